"""The memory of each epoch of a Keras model, with the callback; nothing else in the program changes.

    python examples/keras_fit.py
    vramscope run -- python examples/keras_fit.py         # the same, and everything that was allocated
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import keras
import numpy as np

import vramscope.keras

random = np.random.default_rng(1)
pictures = random.normal(size=(512, 28, 28, 1)).astype("float32")
labels = random.integers(0, 10, size=512)

keras.utils.set_random_seed(1)
model = keras.Sequential([
    keras.Input((28, 28, 1)),
    keras.layers.Conv2D(16, 3, activation="relu", name="edges"),
    keras.layers.Conv2D(32, 3, strides=2, activation="relu", name="shapes"),
    keras.layers.Flatten(name="flat"),
    keras.layers.Dense(64, activation="relu", name="mix"),
    keras.layers.Dense(10, name="digits"),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

memory = vramscope.keras.MemoryCallback(target_batches=[1, 8], reset="epoch", metric=True)
model.fit(pictures, labels, batch_size=64, epochs=2, verbose=2, callbacks=[memory])

print(memory.table())
print(f"The highest peak of the training was {memory.peak() / 2**20:.1f} MiB; the parameters are only "
      f"{model.count_params() * 4 / 2**20:.1f} MiB of it.")
