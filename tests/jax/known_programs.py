"""Programs that know what each of their arrays is. They end at once, with all arrays alive, and print what is true as JSON on the last line.

    known_programs.py leak|whole|tuples|gradients_apart|unnamed|tagged
"""
import json
import os
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS, LAYERS, WIDTH = 20, 8, 96


def parameters():
    return jax.device_put({f"dense_{i}": {"kernel": np.full((WIDTH, WIDTH), 0.01, np.float32), "bias": np.zeros(WIDTH, np.float32)} for i in range(LAYERS)})


def forward(params, x):
    """Also what each layer returns."""
    out = []
    for layer in params.values():
        x = jnp.tanh(x @ layer["kernel"] + layer["bias"])
        out.append(x)
    return x, out


def live_bytes():
    """What JAX itself counts. An array and its shard are two objects with one memory."""
    return sum({array.unsafe_buffer_pointer(): array.nbytes for array in jax.live_arrays()}.values())


def end(said):
    print(json.dumps(said), flush=True)
    os._exit(0)


def leak():
    """Small parameters lie among PJRT's objects on the heap."""
    @partial(jax.jit, donate_argnums=(0, 1))
    def train_step(params, momentum, batch):
        def loss(params):
            y, layers = forward(params, batch)
            return (y ** 2).mean(), layers

        (value, layers), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum, value, layers

    params, kept, live = parameters(), [], []
    momentum = jax.device_put(jax.tree.map(np.zeros_like, params))
    for _ in range(STEPS):
        batch = jax.device_put(np.ones((640, WIDTH), np.float32))
        params, momentum, value, layers = train_step(params, momentum, batch)
        kept.append((value, layers, batch))
        live.append(live_bytes())
    end({"live": live})


def loss_of(params, x, y):
    return ((forward(params, x)[0] - y) ** 2).mean()


def sums(categories):
    """Bytes by category, and of these by layer: {"parameters": trees} whose first keys are the layers. All arrays that JAX has are among them."""
    out, known = {}, {}
    for category, trees in categories.items():
        of_category = out.setdefault(category, {})
        for path, array in jax.tree_util.tree_leaves_with_path(trees):
            layer = next((part.key for part in path if str(getattr(part, "key", "")).startswith("dense_")), "")
            of_category[layer] = of_category.get(layer, 0) + array.nbytes
            known[array.unsafe_buffer_pointer()] = array.nbytes
    rest = {array.unsafe_buffer_pointer(): array.nbytes for array in jax.live_arrays()}
    return {"categories": out, "rest": sum(size for pointer, size in rest.items() if pointer not in known)}


def batch_of(rows=64):
    return tuple(jax.device_put(np.full((rows, WIDTH), value, np.float32)) for value in (1, 2))


def whole():
    """Each step is at its peak when it is over: with its arguments, and what it returned."""
    tx = optax.adam(1e-3)

    @jax.jit
    def train_step(params, opt_state, batch):
        value, gradients = jax.value_and_grad(loss_of)(params, *batch)
        updates, opt_state = tx.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    params, batch = parameters(), None
    opt_state = tx.init(params)
    for _ in range(STEPS):
        batch = None
        batch = batch_of()
        after = train_step(params, opt_state, batch)
        said = sums({"parameters": (params, after[0]), "optimizer state": (opt_state[0].mu, opt_state[0].nu, after[1][0].mu, after[1][0].nu), "inputs": batch})
        params, opt_state, _ = after
    end(said)


def tuples():
    """Bare arrays in tuples: neither the state nor the batch has a name, and one result looks like the batch."""
    @jax.jit
    def train_step(state, batch):
        weights, slot, count = state
        x, y = batch

        def loss(weights):
            return ((jnp.tanh(x @ weights) - y) ** 2).mean()

        slot = 0.9 * slot + jnp.clip(jax.grad(loss)(weights), -1, 1)
        return (weights - 0.1 * slot, slot, count + 1), jnp.tanh(x @ weights)

    state = tuple(jax.device_put(value) for value in (np.full((WIDTH, WIDTH), 0.01, np.float32), np.zeros((WIDTH, WIDTH), np.float32), np.zeros((), np.int32)))
    for _ in range(STEPS):
        batch = batch_of()
        state, predicted = train_step(state, batch)
    end(sums({"parameters": state[0], "optimizer state": state[1], "buffers": state[2], "inputs": batch}))


def gradients_apart():
    """Gradients that one program computes and another applies. Their name is not said, and they come first."""
    tx = optax.adam(1e-3)
    gradients_of = jax.jit(jax.value_and_grad(loss_of))

    @partial(jax.jit, donate_argnums=(1, 2))
    def update(g, params, opt_state):
        updates, opt_state = tx.update(g, opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    params = parameters()
    opt_state = tx.init(params)
    for _ in range(STEPS):
        batch = batch_of()
        value, g = gradients_of(params, *batch)
        params, opt_state = update(g, params, opt_state)
    end(sums({"parameters": params, "optimizer state": (opt_state[0].mu, opt_state[0].nu), "gradients": g, "inputs": batch}))


def unnamed():
    """The state has names, and the parameters have none that says so."""
    tx = optax.adam(1e-3)

    @partial(jax.jit, donate_argnums=(0, 1))
    def train_step(p, opt_state, batch):
        updates, opt_state = tx.update(jax.grad(loss_of)(p, *batch), opt_state, p)
        return optax.apply_updates(p, updates), opt_state

    p = parameters()
    opt_state = tx.init(p)
    for _ in range(STEPS):
        batch = batch_of()
        p, opt_state = train_step(p, opt_state, batch)
    end(sums({"parameters": p, "optimizer state": (opt_state[0].mu, opt_state[0].nu), "inputs": batch}))


def tagged():
    """What the program says of its arrays counts, also where a training step would say something else."""
    import vramscope

    @jax.jit
    def train_step(params, x):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(lambda params: forward(params, x)[0].sum())(params))

    params, table, cache = parameters(), *(jax.device_put(np.ones((rows, WIDTH), np.float32)) for rows in (64, 512))
    vramscope.tag(table, "lookup table", category="constant")
    vramscope.tag(cache, "kv cache", layer="block_3")
    for _ in range(STEPS):
        params = train_step(params, table)
    end({"parameters": sum(leaf.nbytes for leaf in jax.tree.leaves(params)), "constants": table.nbytes, "buffers": cache.nbytes})


if __name__ == "__main__":
    globals()[sys.argv[1]]()
