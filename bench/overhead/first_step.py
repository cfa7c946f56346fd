"""Processor time of the first step of a model, which traces it, with and without recording, taking turns inside one process.

Run it under `vramscope run`. Each turn builds a new model and a new tf.function. Prints JSON: seconds of the first call, the median ratio of a
pair and its 95 % interval, for all threads together; and the ratio for the thread that traces, which does all the work of the Python side.

    vramscope run -- python first_step.py [--model transformer|cnn|lstm] [--pairs 10] [--blocks 4] [--fit]
"""
import argparse
import functools
import gc
import json
import os
import statistics
import time

import hooks  # before TensorFlow

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from in_process import WORDS, interval, train_function, transformer  # noqa: E402
from recorder import Recorder  # noqa: E402

layers = tf.keras.layers
rng = np.random.default_rng(0)


def of_transformer(asked):
    text = rng.integers(0, WORDS, (asked.batch, asked.length + 1))
    return transformer(asked.width, asked.blocks, asked.length), text[:, :-1], text[:, 1:]


def of_cnn(asked):
    x = pixels = layers.Input((32, 32, 3))
    for _ in range(asked.blocks):
        for _ in range(2):
            x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(asked.width // 4, 3, padding="same")(x)))
        x = layers.Dropout(0.2)(layers.MaxPooling2D()(x))
    model = tf.keras.Model(pixels, layers.Dense(10)(layers.Flatten()(x)))
    return model, rng.random((asked.batch, 32, 32, 3), dtype="float32"), rng.integers(0, 10, asked.batch)


def of_lstm(asked):
    model = tf.keras.Sequential([layers.Input((asked.length,), dtype="int32"), layers.Embedding(WORDS, asked.width)])
    for _ in range(asked.blocks):
        model.add(layers.LSTM(asked.width, return_sequences=True))
    model.add(layers.Dense(WORDS))
    text = rng.integers(0, WORDS, (asked.batch, asked.length + 1))
    return model, text[:, :-1], text[:, 1:]


MODELS = {"transformer": of_transformer, "cnn": of_cnn, "lstm": of_lstm}


def first_call_s(asked):
    """Seconds of all threads, and of this one."""
    tf.keras.backend.clear_session()
    gc.collect()
    model, x, y = MODELS[asked.model](asked)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if asked.fit:
        model.compile("adam", loss, jit_compile=False)
        step = functools.partial(model.fit, x, y, batch_size=asked.batch, verbose=0)
    else:
        step = tf.function(train_function(model, loss, tf.constant(x), tf.constant(y)))
    began, began_here = time.process_time(), time.thread_time()
    step()
    return time.process_time() - began, time.thread_time() - began_here


def overhead_percent(pairs):
    ratios = [recorded / plain for plain, recorded in pairs]
    return [round(100 * (ratio - 1), 2) for ratio in (statistics.median(ratios), *interval(ratios))]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--pairs", type=int, default=10)
    arguments.add_argument("--model", choices=MODELS, default="transformer")
    arguments.add_argument("--blocks", type=int, default=4)
    arguments.add_argument("--fit", action="store_true", help="with Keras' own loop instead of a tf.function of one's own")
    asked = arguments.parse_args()
    asked.width, asked.length, asked.batch = 64, 32, 4
    first_call_s(asked)             # what is imported and set up once
    recorder, pairs, pairs_here = Recorder(), [], []
    for i in range(asked.pairs):
        times = {}
        for on in (False, True) if i % 2 == 0 else (True, False):
            recorder.set(on)
            hooks.set_hooks(on)
            times[on] = first_call_s(asked)
        for of, (plain, recorded) in zip((pairs, pairs_here), zip(times[False], times[True])):
            of.append((plain, recorded))
    overhead, *bounds = overhead_percent(pairs)
    print(json.dumps({
        "tensorflow": tf.__version__, "hooks": hooks.count(), "plain_s": round(statistics.median(plain for plain, _ in pairs), 3),
        "recorded_s": round(statistics.median(recorded for _, recorded in pairs), 3),
        "overhead_percent": overhead, "overhead_interval_percent": bounds, "tracing_thread_percent": overhead_percent(pairs_here)}))


if __name__ == "__main__":
    main()
