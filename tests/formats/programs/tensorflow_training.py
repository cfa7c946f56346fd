"""Lets TensorFlow profile a training of a small Keras model, with the creation of its optimizer."""
import sys

import keras
import tensorflow as tf

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(128, activation="relu"),
                          keras.layers.Dense(1)])
x, y = tf.random.normal((512, 64)), tf.random.normal((512, 1))
tf.profiler.experimental.start(sys.argv[1])
model.compile(optimizer=keras.optimizers.Adam(), loss="mse")
model.fit(x, y, batch_size=512, epochs=3, verbose=0)
tf.profiler.experimental.stop()
