"""Training steps as people write them. For each, what its arguments really are, and what the Python side takes them for, as JSON.

    argument_programs.py      on JAX's own CPU device, without a recorder
"""
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training import train_state
from vramscope._hooks.jax import arguments, programs
from vramscope._hooks.jax.dataflow import Flow

X, Y = np.ones((4, 8), np.float32), np.ones((4, 3), np.float32)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(16)(x))
        return nn.Dense(3)(x)


NET = Net()
PARAMS = NET.init(jax.random.PRNGKey(0), X)


def gradients_of(params, x, y):
    return jax.grad(lambda params: ((NET.apply(params, x) - y) ** 2).mean())(params)


def with_train_state():
    state = train_state.TrainState.create(apply_fn=NET.apply, params=PARAMS, tx=optax.adam(1e-3))

    def step(state, x, y):
        return state.apply_gradients(grads=gradients_of(state.params, x, y))

    return step, (state, X, Y), lambda path: "input" if path in ("x", "y") else "parameter" if path.startswith("state.params") else \
        "optimizer_state" if path.startswith("state.opt_state") else "buffer"


def with_optax(donate=False):
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(1e-2, momentum=0.9))

    def step(params, opt_state, batch):
        updates, opt_state = tx.update(gradients_of(params, batch["image"], batch["label"]), opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    return step, (PARAMS, tx.init(PARAMS), {"image": X, "label": Y}), \
        lambda path: {"params": "parameter", "opt_state": "optimizer_state", "batch": "input"}[path.split("[")[0]]


def by_hand():
    """Names of the user's own: the state of the optimizer mirrors the parameters."""
    def step(weights, velocity, images, labels):
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients_of(weights, images, labels))
        return jax.tree.map(lambda w, v: w - 0.1 * v, weights, velocity), velocity

    return step, (PARAMS, jax.tree.map(jnp.zeros_like, PARAMS), X, Y), \
        lambda path: {"weights": "parameter", "velocity": "optimizer_state"}.get(path.split("[")[0], "input")


class Heads(nn.Module):
    """Layers whose names are also those of an optimizer's state, and of a container."""
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3, name="mu")(x) + nn.Dense(3, name="value")(x)


def layers_called_mu_and_value():
    heads = Heads()
    tx = optax.MultiSteps(optax.inject_hyperparams(optax.adam)(learning_rate=1e-3), 2)
    params = heads.init(jax.random.PRNGKey(0), X)
    state = train_state.TrainState.create(apply_fn=heads.apply, params=params, tx=tx)

    def step(state, target_params, x, y):
        def loss(params):
            return ((heads.apply(params, x) - heads.apply(target_params, x) - y) ** 2).mean()

        return state.apply_gradients(grads=jax.grad(loss)(state.params))

    return step, (state, params, X, Y), lambda path: "input" if path in ("x", "y") else \
        "parameter" if path.startswith(("state.params", "target_params")) else "optimizer_state" if path.startswith("state.opt_state") else "buffer"


def list_of_layers():
    """As in JAX's first example; examples have weights, and averages are named as haiku does."""
    params = [(np.ones((8, 16), np.float32), np.zeros(16, np.float32)), (np.ones((16, 3), np.float32), np.zeros(3, np.float32))]
    state = {"norm/~/mean_ema": {"hidden": np.zeros(16, np.float32)}}
    tx = optax.sgd(1e-2, momentum=0.9)

    def step(params, state, opt_state, x, y, weights):
        def loss(params):
            (w0, b0), (w1, b1) = params
            hidden = jnp.tanh(x @ w0 + b0 - state["norm/~/mean_ema"]["hidden"])
            return (weights * ((hidden @ w1 + b1 - y) ** 2).mean(1)).mean(), hidden.mean(0)

        grads, mean = jax.grad(loss, has_aux=True)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), {"norm/~/mean_ema": {"hidden": mean}}, opt_state

    return step, (params, state, tx.init(params), X, Y, np.ones(4, np.float32)), \
        lambda path: {"params": "parameter", "opt_state": "optimizer_state", "state": "buffer"}.get(path.split("[")[0], "input")


def applied_apart():
    """Gradients are computed by one program and applied by another, as in flax's first example."""
    state = train_state.TrainState.create(apply_fn=NET.apply, params=PARAMS, tx=optax.adam(1e-3))

    def update(state, grads):
        return state.apply_gradients(grads=grads)

    return update, (state, jax.tree.map(jnp.ones_like, PARAMS)), lambda path: "gradient" if path.startswith("grads") else \
        "parameter" if path.startswith("state.params") else "optimizer_state" if path.startswith("state.opt_state") else "buffer"


def as_in_keras():
    """Lists of variables: what the step does with them says what they are."""
    leaves, structure = jax.tree.flatten(PARAMS)

    def step(state, data):
        trainable, slots = state
        gradients = jax.tree.leaves(gradients_of(jax.tree.unflatten(structure, trainable), *data))
        slots = [0.9 * s + g for s, g in zip(slots, gradients)]
        return [w - 0.1 * s for w, s in zip(trainable, slots)], slots

    return step, ((leaves, [jnp.zeros_like(leaf) for leaf in leaves]), (X, Y)), lambda path: "parameter" if path.startswith("state[0]") else "optimizer_state" if path.startswith("state[1]") else "input"


def seen(step, values):
    module = jax.jit(step).lower(*values).compiler_ir("stablehlo")
    main = programs._main(module)
    found, donated = programs._arguments_of(main)
    trains = programs._trains(module)
    labels = arguments.classify(found, programs._results_of(main), donated, Flow(module, main) if trains else None)
    return trains, {argument.path: label for argument, label in zip(found, labels)}


def updates(step, values):
    main = programs._main(jax.jit(step).lower(*values).compiler_ir("stablehlo"))
    return arguments.updates_state(programs._arguments_of(main)[0], programs._results_of(main))


def main():
    out = {}
    for make in (with_train_state, with_optax, by_hand, layers_called_mu_and_value, list_of_layers, applied_apart, as_in_keras):
        step, values, truth = make()
        trains, labels = seen(step, values)
        out[make.__name__] = {"trains": trains, "seen": {path: label.category for path, label in labels.items()},
                              "truth": {path: truth(path) for path in labels}, "layers": {path: label.layer for path, label in labels.items()}}
    out["forward only"] = {"trains": seen(NET.apply, (PARAMS, X))[0], "updates": updates(NET.apply, (PARAMS, X))}
    out["applied_apart"]["updates"] = updates(*applied_apart()[:2])
    print(json.dumps(out))


if __name__ == "__main__":
    main()
