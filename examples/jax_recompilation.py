"""A batch of another size in every step: the function is compiled again for each one, and every executable stays in memory. With
"fixed", batches are padded to one size.

    vramscope run -o runs/recompilation -- python examples/jax_recompilation.py
    vramscope summary runs/recompilation
"""
import sys

import jax
import jax.numpy as jnp
import numpy as np

STEPS, FIXED = 12, "fixed" in sys.argv


@jax.jit
def train_step(params, batch, weights):
    def loss(params):
        return (weights * ((batch @ params["w"]) ** 2).mean(1)).sum() / weights.sum()

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


params = {"w": jnp.ones((256, 256)) / 256}
for step in range(STEPS):
    rows = 32 + step
    batch, weights = np.ones((rows, 256), np.float32), np.ones(rows, np.float32)
    if FIXED:
        batch, weights = np.pad(batch, ((0, 64 - rows), (0, 0))), np.pad(weights, (0, 64 - rows))
    params = train_step(params, batch, weights)     # the defect: batch has another shape each time
jax.block_until_ready(params)
print(f"{train_step._cache_size()} executables after {STEPS} steps")
