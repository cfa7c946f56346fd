"""Keras with the JAX backend: steps, layers and categories, against what the model itself says."""
import json
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def recording(vramscope, run, jax_python, plugin_environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording") / "out"
    done = run([vramscope, "run", "-o", folder, "--quiet", "--", jax_python, HERE / "keras_program.py"], env=plugin_environment)
    trace, = folder.glob("*.vram")
    return json.loads(done.stdout.splitlines()[-1]), trace


@pytest.fixture(scope="module")
def newest(vramscope, recording):
    """The tags of the last step, by name."""
    dump = subprocess.check_output([vramscope, "dump", "--jsonl", recording[1]], text=True)
    events = [json.loads(line) for line in dump.splitlines()]
    return {event["name"]: event for event in events if event["event"] == "tag"}


def test_steps_are_batches(vramscope, recording):
    said, trace = recording
    steps = json.loads(subprocess.check_output([vramscope, "steps", "--json", trace]))["steps"]["steps"]
    assert len([step for step in steps if step["kind"] == "train"]) == said["steps"], steps


def test_categories_are_those_of_the_model(recording, newest):
    said, _ = recording
    tagged = {category: sum(tag["bytes"] for tag in newest.values() if tag["category"] == category) for category in ("parameter", "optimizer_state")}
    assert tagged["parameter"] == said["parameter"]
    # The learning rate and the number of iterations are not slots.
    assert said["optimizer_state"] - 64 <= tagged["optimizer_state"] <= said["optimizer_state"]
    weights = {name for name, tag in newest.items() if tag["category"] in ("parameter", "buffer") and tag["layer"] in said["layers"]}
    assert sum(newest[name]["bytes"] for name in weights) == said["weights"], newest


def test_layers_are_those_of_the_model(recording, newest):
    said, _ = recording
    assert {tag["layer"] for tag in newest.values() if tag["category"] == "parameter"} == set(said["layers"])
    assert newest["wide/kernel"]["bytes"] == 64 * 256 * 4
