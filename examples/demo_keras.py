"""Trains a small convolutional network on synthetic images, on a GPU if there is one.

    vramscope run -- python examples/demo_keras.py
"""
import numpy as np
import keras

EPOCHS, STEPS, BATCH, CLASSES = 3, 20, 64, 10

random = np.random.default_rng(1)
pictures = random.normal(size=(STEPS * BATCH, 32, 32, 3)).astype("float32")
labels = random.integers(0, CLASSES, size=STEPS * BATCH)

keras.utils.set_random_seed(1)
model = keras.Sequential([
    keras.Input((32, 32, 3)),
    keras.layers.Conv2D(32, 3, activation="relu", name="edges"),
    keras.layers.Conv2D(64, 3, strides=2, activation="relu", name="shapes"),
    keras.layers.Conv2D(128, 3, strides=2, activation="relu", name="parts"),
    keras.layers.GlobalAveragePooling2D(name="pool"),
    keras.layers.Dense(128, activation="relu", name="mix"),
    keras.layers.Dense(CLASSES, name="classes"),
])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(pictures, labels, batch_size=BATCH, epochs=EPOCHS, verbose=2)
