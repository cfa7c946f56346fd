"""Which batch size fits? Activations grow with the batch, parameters do not: two small runs predict the large one.

    python examples/batch_size_sweep.py
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import keras
import numpy as np
import tensorflow as tf

import vramscope.keras

tf.config.threading.set_inter_op_parallelism_threads(1)  # one op at a time, as on a GPU: in parallel, the peak would depend on timing


def peak(batch):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((24, 24, 3)), keras.layers.Conv2D(32, 3, activation="relu"),
                              keras.layers.Conv2D(32, 3, activation="relu"), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)])
    model.compile("sgd", "mse")
    memory = vramscope.keras.MemoryCallback(reset="epoch")
    model.fit(np.zeros((4 * batch, 24, 24, 3), "float32"), np.zeros((4 * batch, 10), "float32"), batch_size=batch, epochs=2, verbose=0,
              callbacks=[memory])
    return [row.peak for row in memory.rows if row.at == "end"][-1]


sizes = [32, 64, 128, 256]
peaks = {size: peak(size) for size in sizes}
small, next_size = sizes[:2]
per_example = (peaks[next_size] - peaks[small]) / (next_size - small)
for size in sizes:
    guess = peaks[small] + per_example * (size - small)
    print(f"batch {size:4d}: peak {peaks[size] / 2**20:7.1f} MiB, predicted from {small} and {next_size}: {guess / 2**20:7.1f} MiB")
print(f"each example costs {per_example / 1024:.0f} KiB; "
      f"what does not depend on the batch is {(peaks[small] - small * per_example) / 2**20:.1f} MiB")
