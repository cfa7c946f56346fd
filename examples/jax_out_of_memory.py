"""Runs out of memory on purpose, with a batch that is too large for the pool. With "fixed", it is a quarter, which fits as
`estimate` says. A CPU has no limit: there, only the estimates are printed.

    XLA_PYTHON_CLIENT_MEM_FRACTION=0.02 vramscope run -o runs/oom -- python examples/jax_out_of_memory.py
    vramscope oom runs/oom
"""
import sys

import jax
import jax.numpy as jnp
import vramscope.jax

WIDTH, LAYERS = 2048, 16


@jax.jit
def train_step(params, x):
    def loss(params):
        y = x
        for i in range(LAYERS):
            with jax.named_scope(f"layer_{i}"):
                y = jnp.tanh(y @ params[f"layer_{i}"])
        return y.mean()

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def needed(rows):
    params = {f"layer_{i}": jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32) for i in range(LAYERS)}
    return vramscope.jax.estimate(train_step, params, jax.ShapeDtypeStruct((rows, WIDTH), jnp.float32))


limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit", 2 << 30)
too_many = 4096
while needed(too_many).total <= 1.2 * limit:
    too_many *= 2
rows = too_many // 4
print(f"limit {limit / 2**20:.0f} MiB; {rows} rows need {needed(rows).total / 2**20:.0f} MiB, {too_many} rows {needed(too_many).total / 2**20:.0f} MiB")
if jax.default_backend() == "gpu":
    params = {f"layer_{i}": jnp.ones((WIDTH, WIDTH)) / WIDTH for i in range(LAYERS)}
    batch = jnp.ones((rows if "fixed" in sys.argv else too_many, WIDTH))        # the defect
    print(f"trains with {len(batch)} rows", flush=True)
    for _ in range(3):
        params = jax.block_until_ready(train_step(params, batch))
    print("trained")
