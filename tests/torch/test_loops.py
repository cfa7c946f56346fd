"""Lightning, Hugging Face's Trainer and plain loops: steps and epochs are marked without the program's help, callbacks keep rows."""
import json
import subprocess
from pathlib import Path

import pytest

LOOPS = Path(__file__).resolve().parent / "loops.py"


def marks(events, kind):
    return [(e["name"], e["edge"], e["number"]) for e in events if e["event"] == "mark" and e["kind"] == kind]


def paired(all_marks):
    """Every begin has its end before the next begin."""
    assert all_marks and len(all_marks) % 2 == 0
    for begin, end in zip(all_marks[::2], all_marks[1::2]):
        assert (begin[1], end[1]) == ("begin", "end") and begin[0] == end[0], (begin, end)
    return all_marks[::2]


@pytest.fixture(scope="module")
def lightning(record):
    return record(LOOPS, "lightning")


def test_lightning_steps_and_epochs(lightning):
    events = lightning.events()
    step_marks = [(e["kind"], e["name"], e["edge"], e["number"]) for e in events if e["event"] == "mark" and e["kind"] in ("step", "batch")]
    begun = paired([mark[1:] for mark in step_marks])
    assert [name for name, _, _ in begun] == (["train"] * 4 + ["evaluate"] * 4) * 2
    assert [number for _, _, number in begun] == [1, 2, 3, 4] * 4
    assert {(kind, name) for kind, name, _, _ in step_marks} == {("step", "train"), ("batch", "evaluate")}
    assert [(edge, number) for _, edge, number in marks(events, "epoch")] == [("begin", 1), ("end", 1), ("begin", 2), ("end", 2)]


def test_lightning_evaluations_are_no_steps(vramscope, lightning):
    steps = json.loads(subprocess.check_output([vramscope, "steps", "--json", lightning.folder], text=True))["steps"]["steps"]
    assert len([step for step in steps if step["kind"] == "train"]) == lightning.said["steps"] == 8
    assert len(steps) == 16


def test_lightning_marks_come_once_and_without_code(lightning):
    assert lightning.said["callbacks"].count("MarkCallback") == 1
    assert "vramscope:" not in lightning.stderr


def test_lightning_layers_inside_the_closure_of_the_optimizer(lightning):
    """Lightning runs forward and backward inside optimizer.step(): the innermost phase counts."""
    allocs = [e for e in lightning.events() if e["event"] == "alloc"]
    assert {"net.0/Linear", "net.1/ReLU"} <= {e["op"] for e in allocs if e["region"] == "forward"}
    assert any(e["op"] == "net.1/ReluBackward0" for e in allocs if e["region"] == "backward")


def test_lightning_rows(lightning):
    rows = [tuple(row[:4]) for row in lightning.said["rows"]]
    assert rows[:4] == [("train", 1, None, "begin"), ("train", 1, 1, "begin"), ("train", 1, 1, "end"), ("evaluate", 1, None, "begin")]
    assert all(row[4] == "CPU:0" and 0 < row[5] <= row[6] for row in lightning.said["rows"])


def test_transformers_trainer(record, tmp_path):
    recording = record(LOOPS, "transformers", str(tmp_path))
    events = recording.events()
    steps = paired(marks(events, "step"))
    assert [number for _, _, number in steps] == list(range(1, recording.said["steps"] + 1))
    assert len(marks(events, "epoch")) == 4
    assert [row[3] for row in recording.said["rows"] if row[2] is not None] == ["begin", "end"] * recording.said["steps"]
    assert any(e["event"] == "alloc" and e["op"].startswith("transformer.h.1.attn") for e in events)


def test_plain_loop(record):
    recording = record(LOOPS, "plain")
    events = recording.events()
    assert [number for _, _, number in paired(marks(events, "step"))] == [1, 2, 3, 4]
    assert len(recording.said["rows"]) == 8
    first_alloc_in_layer = next(i for i, e in enumerate(events) if e["event"] == "alloc" and e["op"] == "0/Linear")
    tagged = {e["name"] for e in events[:first_alloc_in_layer] if e["event"] == "tag"}
    assert {"0.weight", "0.bias", "2.weight", "2.bias"} <= tagged
    assert recording.said["table"].splitlines()[0].split() == ["phase", "epoch", "batch", "at", "device", "current", "peak"]
