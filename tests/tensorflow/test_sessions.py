"""Programs in the style of TensorFlow 1: the numbers in their loops against TensorFlow's own, their variables against what the graph says."""
import json
import os

import pytest

from attribution import groups
from tensorflow_support import HERE

PROGRAM = HERE / "session_programs.py"
SINGLE_NUMBER = 64      # bytes; TensorFlow keeps step counts and the like elsewhere


@pytest.fixture
def environment(root, build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return {"PYTHONPATH": str(root / "python"), "VRAMSCOPE_BUILD": str(build), "TF_CPU_ALLOCATOR_USE_BFC": "1", "CUDA_VISIBLE_DEVICES": ""}


def numbers_are_tensorflows(said, source):
    assert said["differences"] == [] and said["source"] == source and said["reset"]
    assert said["entries"][0] == said["entries"][1] == len(said["steps"])
    assert said["steps"] == sorted(said["steps"]) and (said["steps"][0], said["steps"][-1]) == (0, 20)
    assert said["logged"][0] == said["logged"][1]


def test_numbers_without_recording(run, newest_tensorflow, environment):
    done = run([newest_tensorflow, PROGRAM, "ref"], env={**os.environ, **environment})
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["kinds"] == ["RefVariable"]
    numbers_are_tensorflows(said, "tensorflow")


@pytest.mark.parametrize("version, kind, classes", [("2.21", "ref", ["RefVariable"]), ("2.16", "resource", ["ResourceVariable"])])
def test_numbers_and_variables_while_recorded(record, python_with, environment, version, kind, classes):
    training = record([python_with(version), PROGRAM, kind], env=environment)
    assert training.said["kinds"] == classes
    numbers_are_tensorflows(training.said, "recorder")
    live = groups(training, "steady", "category", "op")
    shown = {"parameters": training.said["parameters"], "optimizer state": training.said["slots"]}
    recorded = {truth: {name: sum(group["requested"] for (category, op), group in live.items() if category == truth and op.startswith(name + "/"))
                        for name, size in sizes.items() if size > SINGLE_NUMBER} for truth, sizes in shown.items()}
    if kind == "ref":
        assert recorded == {truth: {name: size for name, size in sizes.items() if size > SINGLE_NUMBER} for truth, sizes in shown.items()}, live
    else:
        # A resource variable shares the constant that it starts with until its optimizer writes it: then one op makes the blocks of the
        # variable and of its slots, and only their sum is known.
        random = {name: size for name, size in shown["parameters"].items() if name.endswith("kernel")}
        assert {name: recorded["parameters"][name] for name in random} == random, live
        everything = sum(group["requested"] for (category, op), group in live.items() if category in shown and not op.startswith("table"))
        assert abs(everything - sum(sum(sizes.values()) for sizes in shown.values())) <= SINGLE_NUMBER, live
