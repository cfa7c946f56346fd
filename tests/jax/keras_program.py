"""A Keras model trained with the JAX backend. Prints what is true as JSON on the last line."""
import json
import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, activation="relu", name="wide"), keras.layers.BatchNormalization(name="norm"),
                          keras.layers.Dense(8, name="head")])
model.compile(optimizer="adam", loss="mse")
model.fit(np.ones((128, 64), np.float32), np.ones((128, 8), np.float32), batch_size=32, epochs=2, verbose=0)


def size(variables):
    return sum(variable.value.nbytes for variable in variables)


print(json.dumps({"steps": 2 * 4, "parameter": size(model.trainable_variables), "buffer": size(model.non_trainable_variables),
                  "weights": size(model.weights), "optimizer_state": size(model.optimizer.variables),
                  "layers": sorted(layer.name for layer in model.layers if layer.weights)}))
