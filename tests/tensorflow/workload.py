"""Real TensorFlow programs whose memory TensorFlow itself counts. Prints one line of JSON: what get_memory_info said at the end.

    workload.py fit | eager | function | profiled [LOGDIR]
"""
import ctypes
import json
import os
import sys

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

DEVICE = "GPU:0" if tf.config.list_physical_devices("GPU") else "CPU:0"


def recorder():
    """The recorder's C functions, if this process is recorded."""
    process = ctypes.CDLL(None)
    return process if hasattr(process, "vramscope_check") else None


def check(name):
    """A mark in the trace, with the allocator's own counters beside it."""
    if recorder():
        recorder().vramscope_check(name.encode())


def model():
    layers = tf.keras.layers
    return tf.keras.Sequential([
        layers.Input((16, 16, 3)), layers.Conv2D(8, 3, activation="relu"), layers.Conv2D(16, 3, activation="relu"),
        layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)])


def data(rows=256):
    random = np.random.default_rng(0)
    return random.random((rows, 16, 16, 3), dtype="float32"), random.integers(0, 10, rows)


def loss_function():
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def fit():
    net = model()
    net.compile("adam", loss_function(), jit_compile=os.environ.get("WORKLOAD_XLA") == "1")
    net.fit(*data(), epochs=2, batch_size=32, verbose=0)


def training_step(net, optimizer, loss_of):
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, net(x, training=True))
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables))
        return loss

    return step


def loop(wrap):
    net, optimizer = model(), tf.keras.optimizers.Adam()
    step = wrap(training_step(net, optimizer, loss_function()))
    x, y = data(128)
    for _ in range(2):
        for i in range(0, len(x), 32):
            step(tf.constant(x[i:i + 32]), tf.constant(y[i:i + 32]))


def profiled(logdir):
    """One fit with TensorFlow's profiler running in the second half."""
    net = model()
    net.compile("adam", loss_function(), jit_compile=False)
    x, y = data()
    net.fit(x, y, epochs=1, batch_size=32, verbose=0)
    tf.profiler.experimental.start(logdir)
    check("profiler on")
    net.fit(x, y, epochs=1, batch_size=32, verbose=0)
    tf.reduce_sum(tf.random.normal([300, 7, 5, 3, 2, 2, 1]) * tf.constant(2.0))
    check("profiler off")
    tf.profiler.experimental.stop()


PROGRAMS = {
    "fit": fit,
    "eager": lambda: loop(lambda step: step),
    "function": lambda: loop(tf.function),
    "profiled": profiled,
}


def main():
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
    check("end")
    info = tf.config.experimental.get_memory_info(DEVICE)
    print(json.dumps({"version": tf.__version__, "device": DEVICE, **info}))


if __name__ == "__main__":
    main()
