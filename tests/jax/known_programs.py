"""Programs that know what each of their arrays is. They end at once, with all arrays alive, and print what is true as JSON on the last line.

    known_programs.py leak
"""
import json
import os
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

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
    return {"live": live}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()), flush=True)
    os._exit(0)
