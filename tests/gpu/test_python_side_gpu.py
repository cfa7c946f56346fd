"""On a real GPU: the Python API, the ops, the callback, the attribution and XLA's blocks, against TensorFlow's and XLA's own numbers."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attribution import groups, most_is_known, variables_equal_the_models
from tensorflow_support import Recording

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

pytestmark = pytest.mark.gpu
PYTHON = os.environ.get("PYTHON_GPU", sys.executable)
POOL = "GPU_0_bfc"


@pytest.fixture
def environment(build):
    return {**os.environ, "TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")])), "VRAMSCOPE_BUILD": str(build)}


def answer_of(command, environment):
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def record(vramscope, tmp_path, environment):
    def call(*command, options=()):
        printed = answer_of([vramscope, "run", "-o", tmp_path / "out", "--quiet", *options, "--", PYTHON, *command], environment)
        return Recording(vramscope, tmp_path / "out", printed)

    return call


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_numbers_equal_get_memory_info_at_every_batch(record, environment, mode, recorded):
    program = [HERE / "api_programs.py", "every_batch", mode]
    said = record(*program).said if recorded else json.loads(answer_of([PYTHON, *program], environment).splitlines()[-1])
    assert said == {"batches": 240, "callback": 240, "differences": []}


def test_an_op_in_a_function_equals_the_recorded_total_at_its_own_sequence_number(record):
    recording = record(HERE / "api_programs.py", "in_a_function")
    live, total, recorded = {}, 0, []
    for event in recording.events():
        if event["event"] == "alloc" and event["pool"] == POOL:
            live[event["address"]] = event["granted"]
            total += event["granted"]
        elif event["event"] == "free" and event["pool"] == POOL:
            total -= live.pop(event["address"])
        elif event["event"] == "mark" and event["kind"] == "check":     # the op leaves its value where it read it
            assert event["number"] == total
            recorded.append(total)
    assert recorded == recording.said["values"] and len(recorded) == 80


def test_wrong_use_and_cost(environment):
    said = json.loads(answer_of([PYTHON, HERE / "api_programs.py", "errors"], environment).splitlines()[-1])
    assert said["unknown"].startswith("ValueError: ") and "GPU:99" in said["unknown"] and said["reset"].startswith("ValueError: ")
    assert said["cost_us"] <= 2


@pytest.mark.parametrize("program", ["cnn", "transformer", "custom_loop"])
def test_a_training_is_attributed(record, program):
    recording = record(ROOT / "tests/tensorflow/attribution_programs.py", program)
    most_is_known(recording)
    variables_equal_the_models(recording)


def test_the_parts_of_a_block_of_xla_add_up_to_it(record):
    recording = record(HERE / "api_programs.py", "xla", options=["--xla"])
    answer = json.loads(subprocess.check_output([recording.vramscope, "xla", "--json", recording.trace]))
    block = answer["blocks"][0]
    assert block["recorded"] >= 10, "the block of the training step was recorded in every batch"
    assert sum(part["bytes"] for part in block["parts"]) + block["unused"] == block["bytes"]
    assert block["unused"] < 0.1 * block["bytes"]
    layers = {part["layer"].split("/")[0] for part in block["parts"] if part["bytes"] >= 1 << 20}
    assert layers & set(recording.said["layers"]), layers
    categories = groups(recording, "steady", "category")
    assert categories["XLA temporaries",]["bytes"] >= block["bytes"]
