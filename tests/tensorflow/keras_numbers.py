"""What a Keras user writes to see memory: a callback with everything on beside Keras' own TensorBoard callback, a comparison of models, all
devices at once, a logger with a step. Prints one line of JSON: what we said, and what TensorFlow's own counters said at the same places."""
import gc
import json
import os
import time
import weakref

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from quiet_data import quiet  # noqa: E402

import vramscope  # noqa: E402
import vramscope.keras  # noqa: E402
import vramscope.tf as vtf  # noqa: E402

CPU, BATCHES, EPOCHS = "CPU:0", 4, 3
theirs = tf.config.experimental.get_memory_info
x, y = np.zeros((256 * BATCHES, 32), "float32"), np.zeros((256 * BATCHES, 4), "float32")


def build(width):
    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(width, activation="relu"), keras.layers.Dense(4)])
    model.compile("adam", "mse", jit_compile=False)
    return model


class PeakOfEachBatch(keras.callbacks.Callback):
    """By TensorFlow alone."""

    peaks = []

    def on_train_batch_begin(self, batch, logs=None):
        tf.config.experimental.reset_memory_stats(CPU)

    def on_train_batch_end(self, batch, logs=None):
        self.peaks.append(theirs(CPU)["peak"])


class Readings(keras.callbacks.Callback):
    """Stands before ours, so that it sees a peak before we reset it."""

    epochs = []             # for each epoch: the peak before the validation, and after it

    def on_test_begin(self, logs=None):
        self.before = theirs(CPU)["peak"]

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append([self.before, theirs(CPU)["peak"]])


def agreeing():
    """Validation, resets, chosen batches: rows, history, CSV, plot and TensorBoard of the same numbers."""
    memory = vramscope.keras.MemoryCallback(target_batches=[1, 3], reset="epoch", log_dir="logs", metric=True)
    board = keras.callbacks.TensorBoard("logs", update_freq=1, write_graph=False)
    history = build(1024).fit(quiet(x, y, 256), epochs=EPOCHS, validation_data=quiet(x[:8], y[:8], 4), verbose=0,
                              callbacks=[Readings(), memory, board]).history
    memory.to_csv("memory.csv")
    memory.summary()
    figure = memory.plot("memory.svg")
    drawn = {}
    if hasattr(figure, "axes"):
        for line in figure.axes[0].lines:
            drawn.setdefault(line.get_color(), []).extend(float(value) for value in line.get_ydata())
    return {"rows": memory.rows, "history": memory.history, "keras": history["peak_mib"], "epochs": Readings.epochs, "drawn": list(drawn.values()),
            "labels": [label.get_text() for label in figure.axes[0].get_xticklabels()] if drawn else [], "table": memory.table()}


def compared():
    ends = []
    stopwatch = tf.keras.callbacks.LambdaCallback(on_train_begin=lambda logs: ends.clear(), on_train_batch_end=lambda batch, logs: ends.append(time.perf_counter()))

    def train(width):
        return lambda memory: build(width).fit(quiet(x, y, 256), verbose=0, callbacks=[memory, stopwatch])

    by_functions = vramscope.keras.compare({"first": train(64), "large": train(2048), "again": train(64)})
    ends_of_again = list(ends)
    callbacks = {}
    for name, width in (("large", 2048), ("small", 64)):            # as it was written always: one callback each, nothing else
        callbacks[name] = vramscope.keras.MemoryCallback()
        build(width).fit(quiet(x, y, 256), verbose=0, callbacks=[callbacks[name]])
        alone = theirs(CPU)["peak"]
    left = build(2048)                                              # a model that is still there
    callbacks["beside another"] = vramscope.keras.MemoryCallback()
    build(64).fit(quiet(x, y, 256), verbose=0, callbacks=[callbacks["beside another"]])
    by_callbacks = vramscope.keras.compare(callbacks)
    return {"functions": by_functions.peaks, "said": by_functions.notes, "seconds": by_functions.seconds,
            "stopwatch": (ends_of_again[-1] - ends_of_again[0]) / (len(ends_of_again) - 1), "callbacks": by_callbacks.peaks, "notes": by_callbacks.notes,
            "alone": alone, "left": left.count_params() * 4}


def devices():
    kept = tf.zeros([1000])
    every = vramscope.memory_info()
    counted = {one.device: theirs(one.device) for one in every}
    names = [*tf.config.list_physical_devices("CPU"), *tf.config.list_logical_devices("CPU")]
    by_name = [vramscope.memory_info(name).current for device in names for name in (device.name, device)]
    vramscope.reset_peak()
    return {"every": [[one.device, one.current, one.peak] for one in every], "counted": counted, "by name": by_name, "table": str(every),
            "now": theirs(CPU), "get": vtf.get_memory_info(names[0].name), "kept": int(tf.size(kept))}


def logged():
    model = build(16)
    with vtf.memory_logger(every=1000, to="tensorboard:steps", step=model.optimizer.iterations) as logger:
        for _ in range(3):
            model.fit(x, y, batch_size=256, verbose=0)
            logger.log()
        logger.log(step=1000)
    try:
        vtf.memory_logger(step="twelve")
    except TypeError as error:
        return str(error)


class Node:
    pass


def cycle():
    node = Node()
    node.self, node.kept = node, tf.Variable(tf.zeros([64, 64]))
    return weakref.ref(node.kept)


def held():
    """Variables in a list and a dictionary, and one that only garbage keeps."""
    global many, table
    many = [tf.Variable(tf.zeros([8])) for _ in range(5)]
    table = {"weights": {"kernel": tf.Variable(tf.zeros([8]))}}
    gc.collect()
    gc.disable()
    garbage = cycle()
    before = theirs(CPU)["current"]
    from vramscope import _address
    said = [str(vramscope.who_holds(thing)) for thing in (many[3], table["weights"]["kernel"])]
    said += [str(vramscope.who_holds(_address.of(many[2])[0])), str(vramscope.who_holds(_address.of(garbage())[0]))]
    gc.collect()
    freed = before - theirs(CPU)["current"]
    gc.enable()
    return {"said": said, "freed": freed, "gone": garbage() is None}


build(512).fit(quiet(x, y, 64), verbose=0, callbacks=[PeakOfEachBatch()])
print(json.dumps({"peaks": PeakOfEachBatch.peaks, "agreeing": agreeing(), "compared": compared(), "devices": devices(), "logged": logged(), "held": held()}))
