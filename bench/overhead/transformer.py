"""Trains a small transformer with Keras and prints the time of every step after the first ones, as JSON on the last line.

    transformer.py [STEPS]
"""
import json
import os
import sys
import time

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

WARM_UP = 10
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
BATCH, LENGTH, WORDS, WIDTH, HEADS, BLOCKS = 16, 64, 1000, 128, 4, 4


class Stopwatch(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_train_batch_begin(self, batch, logs=None):
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.seconds.append(time.perf_counter() - self.began)


def transformer():
    tokens = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(WORDS, WIDTH)(tokens)
    for _ in range(BLOCKS):
        attended = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(x, x)
        x = keras.layers.LayerNormalization()(x + attended)
        hidden = keras.layers.Dense(4 * WIDTH, activation="gelu")(x)
        x = keras.layers.LayerNormalization()(x + keras.layers.Dense(WIDTH)(hidden))
    model = keras.Model(tokens, keras.layers.Dense(WORDS)(x))
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


keras.utils.set_random_seed(1)
text = np.random.default_rng(1).integers(0, WORDS, size=((WARM_UP + STEPS) * BATCH, LENGTH + 1))
watch = Stopwatch()
transformer().fit(text[:, :-1], text[:, 1:], batch_size=BATCH, verbose=0, callbacks=[watch])
print(json.dumps({"step_s": watch.seconds[WARM_UP:]}))
