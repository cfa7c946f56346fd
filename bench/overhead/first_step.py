"""Processor time of the first step of a transformer, which traces it, with and without recording, taking turns inside one process.

Run it under `vramscope run`. Each turn builds a new model and a new tf.function. Prints JSON: seconds of the first call for each pair, the median
ratio and its 95 % interval.

    vramscope run -- python first_step.py [--pairs 10] [--blocks 4] [--fit]
"""
import argparse
import gc
import json
import os
import statistics
import time

import hooks  # before TensorFlow

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from in_process import WORDS, interval, training_step, transformer  # noqa: E402
from recorder import Recorder  # noqa: E402


def fitting(asked):
    model = transformer(asked.width, asked.blocks, asked.length)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    text = np.random.default_rng(0).integers(0, WORDS, (asked.batch, asked.length + 1))
    return lambda: model.fit(text[:, :-1], text[:, 1:], batch_size=asked.batch, verbose=0)


def first_call_s(asked):
    tf.keras.backend.clear_session()
    gc.collect()
    step = fitting(asked) if asked.fit else training_step(asked)
    began = time.process_time()
    step()
    return time.process_time() - began


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--pairs", type=int, default=10)
    arguments.add_argument("--blocks", type=int, default=4)
    arguments.add_argument("--fit", action="store_true", help="with Keras' own loop instead of a tf.function of one's own")
    asked = arguments.parse_args()
    asked.width, asked.length, asked.batch, asked.eager = 64, 32, 4, False
    first_call_s(asked)             # what is imported and set up once
    recorder, pairs = Recorder(), []
    for i in range(asked.pairs):
        times = {}
        for on in (False, True) if i % 2 == 0 else (True, False):
            recorder.set(on)
            hooks.set_hooks(on)
            times[on] = first_call_s(asked)
        pairs.append((times[False], times[True]))
    ratios = [recorded / plain for plain, recorded in pairs]
    low, high = interval(ratios)
    print(json.dumps({
        "tensorflow": tf.__version__, "hooks": hooks.count(), "plain_s": round(statistics.median(plain for plain, _ in pairs), 3),
        "recorded_s": round(statistics.median(recorded for _, recorded in pairs), 3),
        "overhead_percent": round(100 * (statistics.median(ratios) - 1), 2),
        "overhead_interval_percent": [round(100 * (low - 1), 2), round(100 * (high - 1), 2)]}))


if __name__ == "__main__":
    main()
