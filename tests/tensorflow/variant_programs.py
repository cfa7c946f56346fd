"""Ways of training side by side, as a user compares them. Prints one line of JSON."""
import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import vramscope.tf as vtf  # noqa: E402

STEPS = 8
models = []


def build():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(512, activation="relu"),
                              keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse", jit_compile=False)
    models.append(model)
    return model


def batch():
    random = np.random.default_rng(1)
    return random.normal(size=(256, 64)).astype("float32"), random.normal(size=(256, 1)).astype("float32")


def by_hand(steps, step_done):
    """Beside ours: TensorFlow's own peak of each step, and a stopwatch."""
    x = tf.random.normal([600, 600])
    peaks, times, before, after = [], [], [], []
    for step in range(steps):
        began = time.perf_counter()
        kept = [tf.matmul(x, x) for _ in range(12 if step == 0 else 4)]
        kept[-1].numpy()
        times.append(time.perf_counter() - began)
        peaks.append(tf.config.experimental.get_memory_info("CPU:0")["peak"])
        before.append(time.perf_counter())
        step_done(600 if step % 2 else 300)
        after.append(time.perf_counter())
    second = steps // 2
    samples = sum(600 if step % 2 else 300 for step in range(second, steps))
    samples_per_s = [samples / (after[-1] - before[second - 1]), samples / (before[-1] - after[second - 1])]        # at least, at most
    with open("by_hand.json", "w", encoding="utf-8") as file:
        json.dump({"peaks": peaks, "seconds": statistics.median(times[second:]), "samples_per_s": samples_per_s, "process": os.getpid()}, file)


def fails(steps, step_done):
    tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))


def every_way():
    """In this process, one after the other: all of them train the same model in the same way."""
    from vramscope._tensorflow import measure
    weights, measured = {}, {}
    for name, train in vtf.variants(build, batch).items():
        measured[name] = measure.measure(train, STEPS)
        weights[name] = np.concatenate([np.ravel(one) for one in models[-1].get_weights()])
        keras.mixed_precision.set_global_policy("float32")
    start = np.concatenate([np.ravel(one) for one in build().get_weights()])
    moved = np.abs(weights["eager"] - start).max()
    return {"apart": {name: float(np.abs(one - weights["eager"]).max() / moved) for name, one in weights.items()}, "measured": measured}


def message(*arguments, **options):
    try:
        vtf.compare(*arguments, **options)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    answer = every_way()
    comparison = vtf.compare({"by hand": by_hand, "fails": fails}, steps=STEPS)
    comparison.plot("variants.svg")
    with open("by_hand.json", encoding="utf-8") as file:
        theirs = json.load(file)
    print(json.dumps({**answer, "peaks": comparison.peaks, "seconds": comparison.seconds, "samples_per_s": comparison.samples_per_s, "table": str(comparison), "theirs": theirs, "here": os.getpid(),
                      "errors": [message({}), message({"a": lambda steps, done: None}), message({"a": by_hand}, steps=2)]}))
