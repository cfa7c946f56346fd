"""The start-up hook: chains, costs nothing, keeps out of processes that do not compute."""
import os
import subprocess
from pathlib import Path

STARTUP = Path(__file__).resolve().parents[1] / "vramscope/_startup"


def test_an_existing_sitecustomize_still_runs(run_python, python, tmp_path):
    other = tmp_path / "site"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import builtins\nbuiltins.other_one_ran = __name__\n")
    source = "import builtins, json, sys, sitecustomize\nprint(json.dumps([builtins.other_one_ran, sitecustomize.__file__]))"
    finished = run_python(python, source, record=True, env={"PYTHONPATH": os.pathsep.join([str(STARTUP), str(other)])})
    assert finished.answer == ["sitecustomize", str(other / "sitecustomize.py")]


def test_a_broken_sitecustomize_fails_as_it_would_without_us(run_python, python, tmp_path):
    other = tmp_path / "site"
    other.mkdir()
    (other / "sitecustomize.py").write_text("raise RuntimeError('theirs')\n")
    finished = run_python(python, "print(1)", record=True, env={"PYTHONPATH": os.pathsep.join([str(STARTUP), str(other)])})
    assert "theirs" in finished.stderr and finished.stdout.strip() == "1"


def test_a_process_that_does_not_compute_leaves_nothing(run_python, python, tmp_path):
    run_python(python, "import tensorflow, keras", record=True)
    assert list((tmp_path / "spool").iterdir()) == []


def test_inert_without_a_recording(run_python, python):
    source = "import sys, json; print(json.dumps([type(f).__module__ for f in sys.meta_path if 'vramscope' in type(f).__module__]))"
    finished = run_python(python, source, env={"PYTHONPATH": str(STARTUP)})
    assert finished.answer == []


def test_start_costs_little(python):
    """Processor time of alternating starts with and without the hook; the least of each, so that a busy machine does not count."""
    def start(with_hook):
        environment = {**os.environ, "VRAMSCOPE_SPOOL": "/nonexistent", "PYTHONPATH": str(STARTUP) if with_hook else ""}
        process = subprocess.Popen([str(python), "-c", "pass"], env=environment)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0
        return used.ru_utime + used.ru_stime

    pairs = [(start(True), start(False)) for _ in range(12)]
    with_hook, without = map(min, zip(*pairs))
    assert with_hook - without <= 0.020, f"{1000 * (with_hook - without):.1f} ms"


def test_the_package_of_the_recorder_is_importable_where_it_is_not_installed(run_python, python):
    finished = run_python(python, "import vramscope, json; print(json.dumps(vramscope.__file__))", record=True,
                          env={"PYTHONPATH": str(STARTUP)})
    assert finished.answer == str(STARTUP.parent / "__init__.py")


def test_a_hook_that_fails_does_not_harm(run_python, python):
    source = """
import sys
sys.modules["vramscope._hooks.tf_graph"] = None      # importing it raises
import tensorflow as tf
print(int(tf.constant(2) + 1))
"""
    finished = run_python(python, source, record=True)
    assert finished.stdout.strip() == "3" and "vramscope: no marks from tensorflow" in finished.stderr


def test_two_installations_on_the_path(run_python, python, tmp_path):
    """`vramscope run` inside `vramscope run` of another version: the first one acts, each sitecustomize runs once."""
    import shutil
    second = tmp_path / "second/vramscope"
    shutil.copytree(STARTUP.parent, second, ignore=shutil.ignore_patterns("__pycache__"))
    other = tmp_path / "site"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import builtins\nbuiltins.runs = getattr(builtins, 'runs', 0) + 1\n")
    source = "import builtins, json, vramscope, tensorflow as tf\nprint(json.dumps([builtins.runs, vramscope.__file__, int(tf.constant(1) + 1)]))"
    path = os.pathsep.join(map(str, [STARTUP, second / "_startup", other]))
    assert run_python(python, source, record=True, env={"PYTHONPATH": path}).answer == [1, str(STARTUP.parent / "__init__.py"), 2]
