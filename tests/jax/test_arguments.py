"""What the arguments of a training step are taken for, against what the program knows: flax, optax, by hand, lists as in Keras."""
import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def programs(jax_python, root):
    done = subprocess.run([jax_python, HERE / "argument_programs.py"], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": str(root / "python"), "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["with_train_state", "with_optax", "by_hand", "applied_apart", "as_in_keras"])
def test_categories(programs, name):
    program = programs[name]
    assert program["trains"] or program["updates"]
    assert len(program["truth"]) >= 10
    assert program["seen"] == program["truth"]


def test_layers(programs):
    layers = programs["with_train_state"]["layers"]
    assert layers["state.params['params']['Dense_0']['kernel']"] == "Dense_0"
    assert layers["state.opt_state[0].mu['params']['Dense_1']['bias']"] == "Dense_1"
    assert programs["with_optax"]["layers"]["batch['image']"] is None


def test_a_program_without_gradients_does_not_train(programs):
    assert not programs["forward only"]["trains"] and not programs["forward only"]["updates"]
    assert programs["applied_apart"]["updates"] and not programs["applied_apart"]["trains"]
