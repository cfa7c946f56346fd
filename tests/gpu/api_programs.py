"""Programs for the tests of the Python side on a GPU. Each prints one line of JSON.

    api_programs.py every_batch [xla] | in_a_function
"""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import vramscope  # noqa: E402
import vramscope.keras  # noqa: E402
import vramscope.tf as vtf  # noqa: E402

keras = tf.keras
GPU = "GPU:0"
info = tf.config.experimental.get_memory_info


def every_batch(mode="graph"):
    """At the begin and end of each of 120 batches: the API, the eager ops and the callback beside TensorFlow's own numbers."""
    differences, rows = [], []

    class Compare(keras.callbacks.Callback):
        def compare(self):
            theirs, ours, again = info(GPU), vramscope.memory_info(GPU), vtf.get_memory_info(GPU)
            with tf.device("/" + GPU):
                now, most = int(vtf.bytes_in_use()), int(vtf.max_bytes_in_use())
            rows.append((theirs["current"], theirs["peak"]))
            for name, op in (("current", now), ("peak", most)):
                if not theirs[name] == getattr(ours, name) == again[name] == op:
                    differences.append([len(rows), name, theirs[name], getattr(ours, name), again[name], op])

        def on_train_batch_begin(self, batch, logs=None):
            self.compare()

        def on_train_batch_end(self, batch, logs=None):
            self.compare()

    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    with tf.device("/CPU:0"):
        x, y = tf.zeros([16 * 120, 64]), tf.zeros([16 * 120, 10])
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16).with_options(options)
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(10)])
    model.compile("adam", "mse", jit_compile=mode == "xla")
    # Without a reset: after one, the result of an op of ours would be part of the peak.
    memory = vramscope.keras.MemoryCallback(target_batches="all", reset=None)
    model.fit(data, verbose=0, callbacks=[memory, Compare()])
    callback = [(row.current, row.peak) for row in memory.rows if row.batch is not None]
    differences += [["callback", place, ours, theirs] for place, (ours, theirs) in enumerate(zip(callback, rows)) if ours != theirs]
    return {"batches": len(rows), "callback": len(callback), "differences": differences[:5]}


def in_a_function():
    weights = tf.Variable(tf.random.normal([300, 300]))

    @tf.function(jit_compile=False)
    def step(x):
        y = tf.matmul(x, weights)
        with tf.control_dependencies([y]):
            middle = vtf.bytes_in_use()
        with tf.control_dependencies([middle]):
            z = tf.matmul(y, weights) + y
        with tf.control_dependencies([z]):
            late = vtf.bytes_in_use()
        with tf.control_dependencies([late]):
            return tf.reduce_sum(z), middle, late

    values = []
    for rows in range(100, 140):
        _, middle, late = step(tf.random.normal([rows, 300]))
        values += [int(middle), int(late)]
    return {"values": values}


def errors():
    def message(action):
        try:
            action()
        except Exception as error:  # noqa: BLE001
            return f"{type(error).__name__}: {error}"
        return "no error"

    return {"unknown": message(lambda: vramscope.memory_info("GPU:99")), "reset": message(lambda: vtf.reset_memory_stats("GPU:99")),
            "cost_us": min(__import__("timeit").repeat(lambda: vramscope.memory_info(GPU), number=2000, repeat=20)) / 2000 * 1e6}


def xla():
    layers = keras.layers
    model = keras.Sequential([keras.Input((32, 32, 3)), layers.Conv2D(32, 3, activation="relu", name="edges"),
                              layers.Conv2D(64, 3, activation="relu", name="shapes"), layers.Flatten(), layers.Dense(64, name="mix"),
                              layers.Dense(10, name="classes")])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
    model.fit(np.zeros((12 * 64, 32, 32, 3), "float32"), np.zeros(12 * 64), batch_size=64, verbose=0)
    return {"layers": [layer.name for layer in model.layers]}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
