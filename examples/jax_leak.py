"""Outputs that are kept from every step: memory grows until it is full. With "fixed", a number is kept instead of the array.

    vramscope run -o runs/leak -- python examples/jax_leak.py
    vramscope leaks runs/leak
"""
import sys

import jax
import jax.numpy as jnp

STEPS, FIXED = 30, "fixed" in sys.argv


@jax.jit
def train_step(params, x):
    loss, gradients = jax.value_and_grad(lambda params: ((x @ params["w"]) ** 2).mean())(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), x @ params["w"] - loss


params = {"w": jnp.ones((256, 256)) / 256}
history = []
for step in range(STEPS):
    params, residuals = train_step(params, jnp.full((512, 256), step / STEPS))
    history.append(float(residuals.mean()) if FIXED else residuals)     # the defect: 512 KiB from every step
kept = sum(array.nbytes for array in jax.live_arrays())
print(f"after {STEPS} steps: {kept / 2**20:.1f} MiB in live arrays")
