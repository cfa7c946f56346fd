"""Trains a small network with JAX, with the parameters and the optimizer's state donated to each step, and prints what JAX counted, as
JSON on the last line.

    models.py mlp|transformer|conv|flax|nnx [STEPS]
"""
import ctypes
import gc
import json
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp

KEY = jax.random.PRNGKey(0)


def dense(key, rows, columns):
    return {"kernel": jax.random.normal(key, (rows, columns)) * rows ** -0.5, "bias": jnp.zeros(columns)}


def apply_dense(layer, x):
    return x @ layer["kernel"] + layer["bias"]


def mlp(width=1024, layers=6, batch=512):
    params = {f"dense_{i}": dense(key, width, width) for i, key in enumerate(jax.random.split(KEY, layers))}

    def forward(params, x):
        for i in range(layers):
            with jax.named_scope(f"dense_{i}"):
                x = jax.nn.relu(apply_dense(params[f"dense_{i}"], x))
        return x

    return params, forward, lambda i: jax.random.normal(jax.random.fold_in(KEY, i), (batch, width))


def transformer(width=256, heads=4, layers=4, batch=8, length=128):
    def block(key):
        keys = jax.random.split(key, 4)
        return {"qkv": dense(keys[0], width, 3 * width), "out": dense(keys[1], width, width),
                "up": dense(keys[2], width, 4 * width), "down": dense(keys[3], 4 * width, width)}

    params = {f"block_{i}": block(key) for i, key in enumerate(jax.random.split(KEY, layers))}

    def normalize(x):
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def attend(layer, x):
        q, k, v = jnp.split(apply_dense(layer["qkv"], x).reshape(batch, length, heads, -1), 3, -1)
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // heads) ** 0.5)
        return apply_dense(layer["out"], jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width))

    def forward(params, x):
        for i in range(layers):
            with jax.named_scope(f"block_{i}"):
                layer = params[f"block_{i}"]
                x = x + attend(layer, normalize(x))
                x = x + apply_dense(layer["down"], jax.nn.gelu(apply_dense(layer["up"], normalize(x))))
        return x

    return params, forward, lambda i: jax.random.normal(jax.random.fold_in(KEY, i), (batch, length, width))


def conv(channels=64, layers=5, batch=32, size=56):
    keys = jax.random.split(KEY, layers)
    params = {f"conv_{i}": {"kernel": jax.random.normal(key, (3, 3, channels, channels)) * (9 * channels) ** -0.5} for i, key in enumerate(keys)}

    def forward(params, x):
        for i in range(layers):
            with jax.named_scope(f"conv_{i}"):
                x = jax.nn.relu(jax.lax.conv_general_dilated(x, params[f"conv_{i}"]["kernel"], (1, 1), "SAME",
                                                             dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return x

    return params, forward, lambda i: jax.random.normal(jax.random.fold_in(KEY, i), (batch, size, size, channels))


def flax(width=256, layers=4, batch=8, length=128):
    from flax import linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
            return x + nn.Dense(width)(nn.gelu(nn.Dense(4 * width)(nn.LayerNorm()(x))))

    class Transformer(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(layers):
                x = Block()(x)
            return x

    model = Transformer()
    batches = lambda i: jax.random.normal(jax.random.fold_in(KEY, i), (batch, length, width))  # noqa: E731
    return model.init(KEY, batches(0)), model.apply, batches


def nnx(width=512, batch=1024):
    """Modules that add no scopes: only lines tell their values apart."""
    from flax import nnx as modules

    class Net(modules.Module):
        def __init__(self, rngs):
            self.first, self.second = modules.Linear(width, 2 * width, rngs=rngs), modules.Linear(2 * width, width, rngs=rngs)

        def __call__(self, x):
            x = self.first(x)           # nnx, first
            x = jnp.tanh(x)             # nnx, tanh
            return self.second(x)       # nnx, second

    graph, params = modules.split(Net(modules.Rngs(0)))
    return params, lambda params, x: modules.merge(graph, params)(x), lambda i: jax.random.normal(jax.random.fold_in(KEY, i), (batch, width))


def make_step(forward, rate=1e-3, donate=(0, 1)):
    """Adam, written down: the optimizer's state is two values for each parameter."""

    @partial(jax.jit, donate_argnums=donate)
    def train_step(params, opt_state, batch):
        loss, gradients = jax.value_and_grad(lambda params: jnp.mean(forward(params, batch) ** 2))(params)
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt_state["mu"], gradients)
        nu = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, opt_state["nu"], gradients)
        params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, mu, nu)
        return params, {"mu": mu, "nu": nu}, loss

    return train_step


def settled_stats(device):
    """The device's counters once nothing changes any more: buffers are freed by other threads."""
    before = None
    while (stats := device.memory_stats()) != before:
        before = stats
        time.sleep(0.2)
    return stats


def main():
    params, forward, batches = globals()[sys.argv[1]]()
    opt_state = {"mu": jax.tree.map(jnp.zeros_like, params), "nu": jax.tree.map(jnp.zeros_like, params)}
    train_step = make_step(forward)
    for i in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
        params, opt_state, loss = train_step(params, opt_state, batches(i))
    jax.block_until_ready((params, opt_state, loss))
    gc.collect()
    gc.disable()
    device = jax.local_devices()[0]
    stats = settled_stats(device)
    process = ctypes.CDLL(None)
    if hasattr(process, "vramscope_check"):
        process.vramscope_check(b"end")
    stats = device.memory_stats() or {}
    print(json.dumps({"allocs": stats.get("num_allocs"), "current_bytes": stats.get("bytes_in_use"), "peak_bytes": stats.get("peak_bytes_in_use"),
                      "largest_bytes": stats.get("largest_alloc_size"), "limit_bytes": stats.get("bytes_limit"), "loss": float(loss),
                      "parameter_bytes": sum(leaf.nbytes for leaf in jax.tree.leaves(params)), "version": jax.__version__}))


if __name__ == "__main__":
    main()
