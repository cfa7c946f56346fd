"""The numbers in the training loop, as users of TensorFlow read them, beside TensorFlow's own. Each program prints one line of JSON.

    loop_programs.py session | compared | board | devices | addresses
"""
import csv
import glob
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
DEVICE = vtf.default_device()
STEPS, BATCHES, EPOCHS, MIB = 20, 4, 3, 1 << 20
theirs = tf.config.experimental.get_memory_info


def session():
    """A program in the style of TensorFlow 1."""
    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    x = v1.placeholder(tf.float32, [None, 256])
    kernel = v1.get_variable("hidden/kernel", [256, 512])
    out = v1.get_variable("out/kernel", [512, 10])
    loss = v1.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, kernel)), out)))
    train = v1.train.AdamOptimizer(1e-3).minimize(loss)
    feed, differences = {x: np.zeros((64, 256), "float32")}, []

    def compare(when):
        now, info, again = theirs(DEVICE), vramscope.memory_info(DEVICE), vtf.get_memory_info(DEVICE)
        differences.extend([when, name] for name in ("current", "peak") if not now[name] == getattr(info, name) == again[name])

    with v1.Session() as running:
        running.run(v1.global_variables_initializer())
        vramscope.memory_info(DEVICE)           # the first time it places an op
        done = 0
        with vtf.memory_logger(every=1000, to="memory.csv", device=DEVICE, step=lambda: done) as logger:
            for done in range(1, STEPS + 1):
                running.run([train, loss], feed)
                compare(done)
                logger.log()
        vramscope.reset_peak(DEVICE)
        reset = theirs(DEVICE)
        compare("reset")
    with open("memory.csv", newline="", encoding="utf-8") as file:
        steps = [int(row["step"]) for row in csv.DictReader(file)]
    return {"differences": differences, "reset": reset["peak"] - reset["current"], "steps": steps, "parameters": (256 * 512 + 512 * 10) * 4}


def build(width):
    model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(width, activation="relu"), keras.layers.Dense(4)])
    model.compile("adam", "mse", jit_compile=False)
    return model


X, Y = np.zeros((256 * BATCHES, 256), "float32"), np.zeros((256 * BATCHES, 4), "float32")


def compared():
    def train(width):
        return lambda memory: build(width).fit(X, Y, batch_size=256, verbose=0, callbacks=[memory])

    by_functions = vramscope.keras.compare({"first": train(64), "large": train(4096), "again": train(64)})
    callbacks = {}
    for name, width in (("large", 4096), ("small", 64)):
        callbacks[name] = vramscope.keras.MemoryCallback()
        train(width)(callbacks[name])
        alone = theirs(DEVICE)["peak"]
    return {"functions": by_functions.peaks, "callbacks": vramscope.keras.compare(callbacks).peaks, "alone": alone, "notes": by_functions.notes}


def points(folder):
    """{tag: {step: value}} of the event files, by TensorFlow's own reader."""
    from tensorflow.core.util import event_pb2
    found = {}
    for path in glob.glob(os.path.join(folder, "*tfevents*")):
        for record in tf.data.TFRecordDataset(path):
            event = event_pb2.Event.FromString(record.numpy())
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor)) if value.HasField("tensor") else value.simple_value
                found.setdefault(value.tag, {})[event.step] = number
    return found


def board():
    """Rows and TensorBoard's points of a run with validation, resets and chosen batches, beside TensorFlow's own peak of each epoch."""
    class Readings(keras.callbacks.Callback):
        epochs = []

        def on_test_begin(self, logs=None):
            self.before = theirs(DEVICE)["peak"]

        def on_epoch_end(self, epoch, logs=None):
            self.epochs.append(max(self.before, theirs(DEVICE)["peak"]))

    memory = vramscope.keras.MemoryCallback(target_batches=[1, 3], reset="epoch", log_dir="logs")
    build(1024).fit(X, Y, batch_size=256, epochs=EPOCHS, validation_data=(X[:8], Y[:8]), verbose=0, callbacks=[Readings(), memory])
    read = points("logs/memory")
    rows = [row for row in memory.rows if row.at == "end"]
    wanted = {}
    for row in rows:
        if row.batch is None:
            wanted.setdefault(f"memory/{row.phase}/{DEVICE}/peak (MiB)", {})[row.epoch - 1] = row.peak / MIB
    return {"wanted": wanted, "read": {tag: read.get(tag) for tag in wanted}, "tensorflow": Readings.epochs,
            "epochs": [row.peak for row in rows if row.phase == "train" and row.batch is None],
            "batches": len([row for row in rows if row.phase == "train" and row.batch is not None])}


def devices():
    with tf.device(DEVICE):
        kept = tf.zeros([1 << 20])
    every = vramscope.memory_info()
    named = [*tf.config.list_physical_devices("GPU"), *tf.config.list_logical_devices("GPU")]
    by_name = [vramscope.memory_info(name).current for device in named for name in (device.name, device)]
    return {"every": {one.device: [one.current, one.peak, one.limit] for one in every}, "counted": {one.device: theirs(one.device) for one in every},
            "by name": by_name, "names": len(named), "kept": kept.shape[0] * 4, "device": DEVICE}


def addresses():
    """Of variables, through TensorFlow's C API and through a tensor in Python; and how many of TensorFlow's numbers the first one takes."""
    from tensorflow.python.framework import ops
    from vramscope import _address
    found = []
    for dtype in ("float32", "float16", "bfloat16", "int64", "bool"):
        with tf.device(DEVICE):
            variable = tf.Variable(tf.zeros([300, 7], dtype))
        before = ops.uid()
        ours = _address.of(variable)
        taken = ops.uid() - before - 1
        found.append([dtype, ours, _address._of_capsule(_address._capsule(variable)), taken])
    return {"found": found}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
