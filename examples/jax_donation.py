"""A training step that does not reuse the memory of its state: the old and the new parameters exist at the same time. With "failed",
the state is donated but comes back in another type, so it cannot be reused; with "fixed", it is reused.

    vramscope run -o runs/donation -- python examples/jax_donation.py
    vramscope summary runs/donation
"""
import sys
import warnings

import jax
import jax.numpy as jnp

MODE = (sys.argv[1:] or ["kept"])[0]
warnings.simplefilter("ignore")     # JAX warns about a failed donation only once, and not at all if the program is sharded


def train_step(params, momentum, x):
    gradients = jax.grad(lambda params: sum(jnp.tanh(x @ w).sum() for w in params.values()))(params)
    momentum = jax.tree.map(lambda m, g: (0.9 * m + g).astype(jnp.bfloat16 if MODE == "failed" else m.dtype), momentum, gradients)
    return jax.tree.map(lambda p, m: (p - 1e-3 * m).astype(p.dtype), params, momentum), momentum


if MODE == "kept":
    train_step = jax.jit(train_step)
else:
    train_step = jax.jit(train_step, donate_argnames=("params", "momentum"))
params = {f"layer_{i}": jnp.ones((512, 512)) for i in range(8)}
momentum = jax.tree.map(jnp.zeros_like, params)
for _ in range(10):
    new_params, new_momentum = train_step(params, momentum, jnp.ones((32, 512)))     # the defect: nothing is donated
    jax.block_until_ready((new_params, new_momentum))
    in_use = (jax.devices()[0].memory_stats() or {}).get("bytes_in_use", 0)
    donated = sum(leaf.is_deleted() for leaf in jax.tree.leaves((params, momentum)))
    params, momentum = new_params, jax.tree.map(lambda m: m.astype(jnp.float32), new_momentum)
print(f"{donated} of 16 arrays were given to the last step, and there were {in_use} bytes in use after it")
