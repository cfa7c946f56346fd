# A small training as people write it: recorded for the tests of the page, and for the pictures of the guide.
import sys

import keras
import numpy as np

eager = "--eager" in sys.argv
keras.utils.set_random_seed(1)
images = np.random.rand(768, 32, 32, 3).astype("float32")
labels = np.random.randint(0, 10, 768)

model = keras.Sequential([
    keras.Input((32, 32, 3)),
    keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
    keras.layers.MaxPooling2D(),
    keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(10),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=eager)
model.fit(images, labels, batch_size=64, epochs=1 if eager else 2, verbose=0)
