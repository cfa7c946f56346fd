"""Two plugins in one process: JAX's CUDA plugin, and a copy of it under another name, which has a client and a pool of its own. Both compute
in turns, with arrays of different sizes. Prints what JAX counted for each, as JSON on the last line.

    jax_two_plugins.py          with PJRT_NAMES_AND_LIBRARY_PATHS=other:COPY JAX_PLATFORMS=cuda,other
"""
import ctypes
import gc
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

DEVICES = {jax.devices("cuda")[0]: 512, jax.devices("other")[0]: 768}
step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: jnp.tanh(x @ w).sum())(w))
state = {device: (jax.device_put(np.ones((width, width), "float32"), device), jax.device_put(np.ones((64, width), "float32"), device))
         for device, width in DEVICES.items()}
for _ in range(6):
    for device, (w, x) in state.items():
        state[device] = step(w, x), x
jax.block_until_ready(list(state.values()))
gc.collect()
gc.disable()
before = None
while (stats := [device.memory_stats() for device in DEVICES]) != before:
    before = stats
    time.sleep(0.2)
process = ctypes.CDLL(None)
if hasattr(process, "vramscope_check"):
    process.vramscope_check(b"end")
print(json.dumps([{"allocs": each["num_allocs"], "current_bytes": each["bytes_in_use"], "peak_bytes": each["peak_bytes_in_use"]} for each in stats]))
