"""Which of three models needs less memory? One callback each, one table, one plot.

    python examples/compare_models.py [plot.svg]
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import sys

import keras
import numpy as np

import vramscope.keras

x, y = np.zeros((256, 32, 32, 3), "float32"), np.zeros((256, 10), "float32")


def convolutional(width, strides):
    return keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Conv2D(width, 3, strides=strides, activation="relu"),
                             keras.layers.Conv2D(width, 3, activation="relu"), keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)])


callbacks = {}
for name, width, strides in (("wide", 64, 1), ("narrow", 16, 1), ("wide, strided", 64, 2)):
    keras.backend.clear_session()                         # the one before shall not count
    model = convolutional(width, strides)
    model.compile("adam", "mse")
    callbacks[name] = vramscope.keras.MemoryCallback(reset="epoch")
    model.fit(x, y, batch_size=64, epochs=2, verbose=0, callbacks=[callbacks[name]])

comparison = vramscope.keras.compare(callbacks)
print(comparison.table())
if len(sys.argv) > 1:
    comparison.plot(sys.argv[1])
print("Activations decide: a stride of 2 in the first layer saves more than parameters ever could.")
