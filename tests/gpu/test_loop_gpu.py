"""On a real GPU: the numbers in the training loop (sessions, comparisons, TensorBoard, all devices, addresses of variables) against TensorFlow's own."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/tensorflow"))
from attribution import groups  # noqa: E402
from tensorflow_support import Recording  # noqa: E402

pytestmark = pytest.mark.gpu
PYTHON = os.environ.get("PYTHON_GPU", sys.executable)


@pytest.fixture
def run_program(build, vramscope, tmp_path):
    """run_program(name, recorded) -> (what it said, the recording or None)."""

    def call(name, recorded=False):
        environment = {**os.environ, "TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2",
                       "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")])), "VRAMSCOPE_BUILD": str(build)}
        before = [vramscope, "run", "-o", tmp_path / "out", "--quiet", "--"] if recorded else []
        done = subprocess.run([str(part) for part in (*before, PYTHON, HERE / "loop_programs.py", name)], env=environment, cwd=tmp_path,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1]), Recording(vramscope, tmp_path / "out", done.stdout) if recorded else None

    return call


@pytest.mark.parametrize("recorded", [False, True])
def test_a_program_with_sessions(run_program, recorded):
    said, recording = run_program("session", recorded)
    assert said["differences"] == [] and said["reset"] == 0
    assert said["steps"] == [0, *range(1, 21), 20]
    if recorded:
        parameters = groups(recording, "steady", "category")["parameters",]["requested"]
        assert said["parameters"] <= parameters < said["parameters"] + 4096


def test_each_model_is_compared_by_itself(run_program):
    said, _ = run_program("compared")
    peaks = {name: columns["train peak"] for name, columns in said["functions"].items()}
    assert peaks["large"] > 3 * peaks["first"] and abs(peaks["again"] - peaks["first"]) < peaks["large"] / 20
    assert said["callbacks"]["small"]["train peak"] == said["alone"] < said["callbacks"]["large"]["train peak"]
    assert "measured by itself" in said["notes"][0]


@pytest.mark.parametrize("recorded", [False, True])
def test_tensorboard_has_the_values_of_the_rows(run_program, recorded):
    said, _ = run_program("board", recorded)
    assert said["read"] == said["wanted"] and all(list(points) == ["0", "1", "2"] for points in said["read"].values())
    assert said["epochs"] == said["tensorflow"] and said["batches"] == 6


def test_all_devices_in_one_call(run_program):
    said, _ = run_program("devices")
    assert said["device"] == "GPU:0" and "GPU:0" in said["every"]
    assert {name: {"current": current, "peak": peak} for name, (current, peak, _) in said["every"].items()} == said["counted"]
    assert len(said["by name"]) == 2 * said["names"] and said["every"]["GPU:0"][0] in said["by name"]
    assert said["every"]["GPU:0"][0] >= said["kept"] and said["every"]["GPU:0"][2] > 1 << 30


@pytest.mark.parametrize("recorded", [False, True])
def test_variables_lie_where_tensorflow_says(run_program, recorded):
    said, _ = run_program("addresses", recorded)
    assert len(said["found"]) == 5
    assert all(ours == theirs and ours[0] > 0 and taken == 0 for _, ours, theirs, taken in said["found"]), said["found"]
