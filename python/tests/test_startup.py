"""The start-up hook: chains, costs nothing, keeps out of processes that do not compute."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def flags_seen(python, inject, tmp_path, *options, startup=STARTUP, code="import sys, json; print(json.dumps(getattr(sys, '_vramscope_startup', None)))", **env):
    """What a Python that was started with these options, and without our folder on its path, prints."""
    (tmp_path / "spool").mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, "VRAMSCOPE_SPOOL": str(tmp_path / "spool"), "LD_PRELOAD": str(inject), "VRAMSCOPE_STARTUP": str(startup), **env}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run([str(python), *options, "-c", code], env=environment, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


def interpreters():
    """This one, and every other Python from 3.9 on that is on this machine."""
    found = {f"3.{minor}": shutil.which(f"python3.{minor}") for minor in range(9, 16)}
    return {"this": sys.executable, **{name: path for name, path in found.items() if path and works(path)}}


def works(path):
    return subprocess.run([path, "-c", "pass"], capture_output=True).returncode == 0


@pytest.mark.parametrize("options", [(), ("-I",), ("-E",), ("-s",), ("-I", "-B"), ("-X", "utf8")])
@pytest.mark.parametrize("name", interpreters())
def test_no_option_of_the_interpreter_keeps_the_hook_out(inject, tmp_path, name, options):
    assert flags_seen(interpreters()[name], inject, tmp_path, *options) == [str(STARTUP)]


@pytest.mark.parametrize("name", interpreters())
def test_modules_are_as_they_would_be_without_us(inject, tmp_path, name):
    code = "import json, sys; print(json.dumps(['sitecustomize' in sys.modules, 'site' in sys.modules, '__main__' in sys.modules, dir()]))"
    python = interpreters()[name]
    plain = json.loads(subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout)
    assert flags_seen(python, inject, tmp_path, "-I", code=code) == plain


def test_an_installed_sitecustomize_runs_when_ours_is_built_in(this_python, inject, tmp_path):
    other = tmp_path / "lib"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import builtins\nbuiltins.other_one_ran = __file__\n")
    (other / "usercustomize.py").write_text("")
    code = "import builtins, json, sys; print(json.dumps([builtins.other_one_ran, sys.modules['sitecustomize'].__file__, len(sys._vramscope_startup)]))"
    (tmp_path / "spool").mkdir(mode=0o700)
    environment = {**os.environ, "VRAMSCOPE_SPOOL": str(tmp_path / "spool"), "LD_PRELOAD": str(inject), "VRAMSCOPE_STARTUP": str(STARTUP),
                   "PYTHONPATH": os.pathsep.join([str(STARTUP), str(other)])}
    done = subprocess.run([str(this_python), "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [str(other / "sitecustomize.py")] * 2 + [1]


def test_start_up_files_that_are_gone_do_not_harm(this_python, inject, tmp_path):
    assert flags_seen(this_python, inject, tmp_path, "-I", startup=tmp_path / "nowhere") is None


def test_nothing_of_ours_can_be_imported_by_accident(record_python, this_python):
    """The program's own module of any name is found, and the path is as it would be without us."""
    source = "import json, sys, pkgutil\nprint(json.dumps([sys.path[1:], sorted(m.name for m in pkgutil.iter_modules() if m.name in {names!r})]))"
    source = source.replace("{names!r}", repr([file.stem for file in STARTUP.glob("*.py")] + ["late"]))
    plain = subprocess.run([str(this_python), "-c", source], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(STARTUP.parents[1])})
    _, printed = record_python(this_python, source)
    assert json.loads(printed) == json.loads(plain.stdout)


def test_a_module_of_the_program_named_like_one_of_ours(record_python, this_python, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/late.py").write_text("mine = True\n")
    source = f"import sys; sys.path.append({str(tmp_path / 'lib')!r}); import late; print(late.mine)"
    for options in ((), ("-S",)):
        script = f"import subprocess, sys; subprocess.run([sys.executable, *{options!r}, '-c', {source!r}], check=True)"
        _, printed = record_python(this_python, script)
        assert printed.strip() == "True"


WITHOUT_RECORDER = """
import os, subprocess, sys
environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
done = subprocess.run([sys.executable, "-c", "import tensorflow as tf; print(int(tf.constant(1) + 1))"], env=environment, capture_output=True, text=True)
print(done.stdout.strip(), done.returncode, "vramscope" in done.stderr)
"""


def test_silent_where_the_recorder_is_not_preloaded(record_python, python):
    _, printed = record_python(python, WITHOUT_RECORDER)
    assert printed.split() == ["2", "0", "False"]


def old_interpreters():
    """Pythons before 3.9 on this machine: python2.7, python3.6 and so on, on the path or of pyenv."""
    found = {}
    for version in ("2.7", "3.6", "3.7", "3.8"):
        of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        for path in [shutil.which(f"python{version}"), *map(str, of_pyenv)]:
            if path and works(path):
                found[version] = path
    return found


@pytest.mark.parametrize("with_other", [False, True])
@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8"])
def test_an_old_python_runs_as_without_us(inject, tmp_path, version, with_other):
    path = old_interpreters().get(version)
    if path is None:
        pytest.skip(f"no Python {version} here")
    (tmp_path / "spool").mkdir(mode=0o700)
    (tmp_path / "site").mkdir()
    if with_other:
        (tmp_path / "site/sitecustomize.py").write_text("import sys\nsys.other_one_ran = __name__\n")
    code = "import sys; print([getattr(sys, 'other_one_ran', None), 'sitecustomize' in sys.modules, sys.path])"

    def run(*folders, **environment):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        done = subprocess.run([path, "-c", code], env=environment, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        return done.stdout, done.stderr

    plain = run(tmp_path / "site")
    recorded = run(STARTUP, tmp_path / "site", VRAMSCOPE_SPOOL=str(tmp_path / "spool"), LD_PRELOAD=str(inject), VRAMSCOPE_STARTUP=str(STARTUP))
    assert recorded == plain and plain[1] == "" and ("'sitecustomize'" in plain[0]) == with_other


TRAINING = """
import sys
sys.path[:0] = {path!r}
import tensorflow as tf
weight = tf.Variable(tf.ones([64, 64]), name="weight")

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(x @ weight)
    weight.assign_sub(0.01 * tape.gradient(loss, weight))

for _ in range(20):
    step(tf.ones([32, 64]))
"""


@pytest.fixture
def recorded(tmp_path, build, vramscope, python):
    """recorded(command, *options of run) -> the trace as JSON, the first line of its summary, the rest; `command` gets the program."""

    def call(command, *options):
        path = subprocess.run([str(python), "-c", "import sys, json; print(json.dumps([p for p in sys.path if p]))"], capture_output=True, text=True,
                              check=True).stdout
        (tmp_path / "script.py").write_text(TRAINING.format(path=json.loads(path)))
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_CPU_ALLOCATOR_USE_BFC": "1", "CUDA_VISIBLE_DEVICES": ""}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run([str(vramscope), "run", *options, "-o", str(tmp_path / "out"), "--", *command(str(python), "script.py")],
                              env=environment, capture_output=True, text=True, timeout=240, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        say = lambda *more: subprocess.run([str(vramscope), "summary", *more, str(tmp_path / "out")], capture_output=True, text=True, check=True).stdout
        first, _, rest = say().partition("\n")
        return json.loads(say("--json")), first, rest, done.stderr

    return call


COMMANDS = {
    "isolated": lambda python, script: [python, "-I", script],
    "no environment": lambda python, script: [python, "-E", script],
    "no site": lambda python, script: [python, "-S", script],
    "no site, isolated": lambda python, script: [python, "-I", "-S", script],
    "path set anew": lambda python, script: ["/bin/sh", "-c", f"PYTHONPATH=/nowhere exec {python} {script}"],
    "path removed": lambda python, script: ["/bin/sh", "-c", f"unset PYTHONPATH; {python} {script}"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_steps_and_names_are_there(recorded, name):
    trace, first, rest, said = recorded(COMMANDS[name])
    assert trace["settings"]["python_side.tensorflow"] == "on" and "tensorflow.version" in trace["settings"]
    assert "without the Python hooks" not in first + rest + said and "steps" in rest.lower()


def test_where_the_hooks_are_missing_the_first_line_says_so(recorded):
    trace, first, rest, said = recorded(COMMANDS["isolated"], "--no-python")
    assert trace["settings"]["python_side.tensorflow"] == "absent"
    assert "Recorded without the Python hooks for TensorFlow: steps, layers and names are missing" in first
    assert "category known" not in rest and "without the Python hooks" in said
