"""Two plugins in one process: JAX's CUDA plugin, and the CPU plugin behind the same C interface. Both compute in turns. Prints what JAX
counted on the GPU, as JSON on the last line.

    jax_two_plugins.py
"""
import ctypes
import gc
import json
import time

import jax
import jax.numpy as jnp

gpu, cpu = jax.devices("cuda")[0], jax.devices("xla_cpu")[0]
step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: jnp.tanh(x @ w).sum())(w))
state = {device: (jax.device_put(jnp.ones((512, 512)), device), jax.device_put(jnp.ones((64, 512)), device)) for device in (gpu, cpu)}
for _ in range(6):
    for device, (w, x) in state.items():
        state[device] = step(w, x), x
jax.block_until_ready(list(state.values()))
gc.collect()
gc.disable()
before = None
while (stats := gpu.memory_stats()) != before:
    before = stats
    time.sleep(0.2)
process = ctypes.CDLL(None)
if hasattr(process, "vramscope_check"):
    process.vramscope_check(b"end")
stats = gpu.memory_stats()
print(json.dumps({"allocs": stats["num_allocs"], "current_bytes": stats["bytes_in_use"], "peak_bytes": stats["peak_bytes_in_use"],
                  "platforms": sorted({device.platform for device in state})}))
