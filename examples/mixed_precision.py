"""Mixed precision halves the activations; parameters and optimizer slots stay as large as they were.

    python examples/mixed_precision.py
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import keras
import numpy as np

import vramscope.keras

x, y = np.zeros((4096, 128), "float32"), np.zeros((4096, 8), "float32")
callbacks = {}
for policy in ("float32", "mixed_bfloat16"):
    keras.mixed_precision.set_dtype_policy(policy)
    model = keras.Sequential([keras.Input((128,))] + [keras.layers.Dense(256, activation="relu") for _ in range(6)] + [keras.layers.Dense(8)])
    model.compile("adam", "mse", jit_compile=False)
    callbacks[policy] = vramscope.keras.MemoryCallback(reset="epoch")
    model.fit(x, y, batch_size=4096, epochs=4, verbose=0, callbacks=[callbacks[policy]])
    parameters = model.count_params() * 4

# The last epochs only: the first one includes what tracing and initialization needed.
peaks = {name: [row.peak - row.current for row in callback.rows if row.at == "end"][-1] for name, callback in callbacks.items()}
print(f"parameters and Adam's slots {3 * parameters / 2**20:.1f} MiB in both; a step on top of that: "
      + ", ".join(f"{name} {peak / 2**20:.1f} MiB" for name, peak in peaks.items()))
