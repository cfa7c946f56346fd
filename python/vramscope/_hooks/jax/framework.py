"""JAX as the Python side knows it. Every Python process of a recorded run reads this (importing.py): constants, no imports."""

WORD = "jax"
NAME = "JAX"
MODULE = "jax"
WATCHED = {"jax": "vramscope._hooks.jax"}
COUNTERS = "vramscope._jax.stats"
PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax", "chex")
