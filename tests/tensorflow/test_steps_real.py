"""Steps and peaks on real Keras runs: equal to the truth, or "cannot tell"; never wrong."""
import json
from pathlib import Path

import pytest

from step_programs import BATCHES

PROGRAM = Path(__file__).resolve().parent / "step_programs.py"


@pytest.fixture
def recorded(record, run, vramscope, newest_tensorflow, tmp_path):
    """recorded(mode, options) -> (TensorFlow's counters, the answer of `steps`, the peaks of all places)."""

    def call(mode, options=()):
        recording = record([newest_tensorflow, PROGRAM, mode], options)
        ask = lambda verb: json.loads(run([vramscope, verb, "--json", tmp_path / "out"]).stdout)  # noqa: E731
        return recording.said, ask("steps")["steps"], [p["peak"] for p in ask("summary")["overview"]["places"]]

    return call


@pytest.mark.parametrize("mode", BATCHES)
def test_steps_without_python(recorded, mode):
    counters, steps, peaks = recorded(mode, ["--no-python"])
    print(mode, steps["sentence"])
    if steps["source"] == "none":
        assert steps["why"]
    else:
        assert len(steps["steps"]) == BATCHES[mode]
    assert counters["peak"] in peaks


@pytest.mark.parametrize("mode", BATCHES)
def test_steps_reported_by_keras(recorded, mode):
    counters, steps, peaks = recorded(mode)
    assert steps["source"] == "reported"
    train = [s for s in steps["steps"] if s["kind"] == "train"]
    assert sum(s["batches"] for s in train) == BATCHES[mode]
    assert train[0]["warmup"] and not train[-1]["warmup"]
    assert counters["peak"] in peaks
