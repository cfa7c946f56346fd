"""On a real GPU: the category of every block at the steady peak, against what PyTorch, TensorFlow and XLA themselves keep it for.

All programs are recorded at the same time, each in a process of its own: most of their time is spent on imports and on contexts.
"""
import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path

import pytest

MEANING_TESTS = Path(__file__).resolve().parent.parent / "meaning"
sys.path.insert(0, str(MEANING_TESTS))
import score  # noqa: E402
import tf_truth  # noqa: E402
import xla_truth  # noqa: E402

pytestmark = pytest.mark.gpu
TENSORFLOW = os.environ.get("PYTHON_GPU", sys.executable)
TORCH = os.environ.get("PYTHON_GPU_TORCH", TENSORFLOW)
AT_ONCE = 5
# By mode of the program: the interpreter, the program, the least share of right bytes, the trainings.
PROGRAMS = {"cuda": (TORCH, "torch_programs.py", 0.99, ("resnet", "transformer", "gpt", "lstm", "unet")),
            "graph": (TENSORFLOW, "tf_programs.py", 0.96, ("resnet", "transformer", "unet", "embedding")),
            "eager": (TENSORFLOW, "tf_programs.py", 0.95, ("cnn", "transformer", "vae")),
            "xla": (TENSORFLOW, "tf_programs.py", 0.95, ("mlp", "cnn", "transformer"))}


def recorded(vramscope, root, mode, name):
    """(folder of the traces, folder of the claims, the finished process)"""
    python, program, _, _ = PROGRAMS[mode]
    folder, claims = root / f"{mode}-{name}", root / f"{mode}-{name}-claims"
    claims.mkdir()
    command = [vramscope, "run", "-o", folder, "--quiet", *(["--xla"] if mode == "xla" else []), "--", python, MEANING_TESTS / program, mode, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "VRAMSCOPE_TEST_CLAIMS": str(claims), "TF_FORCE_GPU_ALLOW_GROWTH": "true"})
    return folder, claims, done


@pytest.fixture(scope="module")
def recordings(vramscope, tmp_path_factory):
    """{(mode, name): future of what `recorded` returns}. Programs of interpreters that were not asked for (-k) are not started."""
    root, started = tmp_path_factory.mktemp("categories"), {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        def start(mode):
            for name in PROGRAMS[mode][3]:
                if (mode, name) not in started:
                    started[mode, name] = pool.submit(recorded, vramscope, root, mode, name)

        yield start, started


def oracle_for(folder, mode):
    def accepted_for(_, said):
        if mode == "xla":
            return xla_truth.accepted([folder])
        return tf_truth.accepted(said) if "graphs" in said else score.accepted

    return accepted_for


@pytest.fixture(scope="module")
def wanted(request):
    """The modes that tests of this run ask for."""
    return {item.callspec.params["mode"] for item in request.session.items if item.path == request.path and hasattr(item, "callspec")}


@pytest.mark.parametrize("mode, name", [(mode, name) for mode, (*_, names) in PROGRAMS.items() for name in names])
def test_categories(vramscope, recordings, wanted, mode, name):
    start, started = recordings
    for each in PROGRAMS:
        if each in wanted:
            start(each)
    folder, claims, done = started[mode, name].result()
    assert done.returncode == 0, done.stdout + done.stderr
    results = score.as_recorded(vramscope, folder, claims, done.stdout, oracle_for(folder, mode))
    matrix, *_ = results[name]
    print(f"{mode} {name}: right {score.share_right(matrix):.1%}, judged {score.share_judged(matrix):.1%}\n{score.as_text(matrix)}")
    least = PROGRAMS[mode][2]
    report = score.too_low(results, least, least)
    assert not report, "\n".join(report)
