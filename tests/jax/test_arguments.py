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


@pytest.mark.parametrize("name", ["with_train_state", "with_optax", "by_hand", "layers_called_mu_and_value", "list_of_layers", "applied_apart",
                                  "as_in_keras"])
def test_categories(programs, name):
    program = programs[name]
    assert program["trains"] or program["updates"]
    assert len(program["truth"]) >= 10, program
    assert program["seen"] == program["truth"]


def test_layers(programs):
    layers = programs["with_train_state"]["layers"]
    assert layers["state.params['params']['Dense_0']['kernel']"] == "Dense_0"
    assert layers["state.opt_state[0].mu['params']['Dense_1']['bias']"] == "Dense_1"
    assert programs["with_optax"]["layers"]["batch['image']"] is None


def test_layers_of_optimizer_state_are_those_of_the_parameters(programs):
    layers = programs["layers_called_mu_and_value"]["layers"]
    for leaf in ("kernel", "bias"):
        for layer in ("mu", "value"):
            below = f"['params']['{layer}']['{leaf}']"
            named = {path: found for path, found in layers.items() if path.endswith(below)}
            assert len(named) == 5 and set(named.values()) == {layer}, named     # twice parameters, Adam's two, gradients so far
    assert layers["state.opt_state.inner_opt_state.hyperparams['learning_rate']"] is None


def test_layers_in_lists(programs):
    layers = programs["list_of_layers"]["layers"]
    assert layers["params[1][0]"] == layers["opt_state[0].trace[1][0]"] == "params/1"
    assert layers["params[0][1]"] == layers["opt_state[0].trace[0][1]"] == "params/0"
    assert layers["state['norm/~/mean_ema']['hidden']"] == "norm/~/mean_ema"


def test_a_program_without_gradients_does_not_train(programs):
    assert not programs["forward only"]["trains"] and not programs["forward only"]["updates"]
    assert programs["applied_apart"]["updates"] and not programs["applied_apart"]["trains"]
