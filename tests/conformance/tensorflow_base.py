"""What the TensorFlow programs of this folder share: a TensorFlow whose counter shows the same bytes in every run, and small networks whose
activations have 1 MiB.

What differs from run to run otherwise: which arrays are copied (numpy_alignment.py), in which order threads compute, what the optimizer of
graphs makes of them (it walks hash tables that are seeded by an address), how far ahead a dataset is read, and which region of the
allocator has the lower address.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"       # its scratch memory depends on the machine

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from counted import counters  # noqa: E402
from numpy_alignment import never_aligned  # noqa: E402

keras = tf.keras
ROWS, WIDTH = 8192, 32                          # 1 MiB of float32

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def prepare():
    never_aligned()
    tf.keras.utils.set_random_seed(1)


def count():
    """What is in use now, and at most since the last time."""
    info = tf.config.experimental.get_memory_info("CPU:0")
    tf.config.experimental.reset_memory_stats("CPU:0")
    counters.append([info["current"], info["peak"]])


def hold_outputs(hold):
    """Calls of layers are wrapped."""


class Count(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        count()

    def on_test_batch_end(self, batch, logs=None):
        count()

    def on_predict_batch_end(self, batch, logs=None):
        count()

    def on_epoch_end(self, epoch, logs=None):
        count()


def arrays(rows=ROWS):
    x = np.random.default_rng(0).normal(size=(rows, WIDTH)).astype("float32")
    return x, x[:, :1].copy()


def tensors(rows=ROWS):
    return tuple(map(tf.constant, arrays(rows)))


def batches(count):
    """A dataset of so many batches, read one by one in the thread that asks."""
    x, y = arrays(count * ROWS)
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.threading.private_threadpool_size = options.threading.max_intra_op_parallelism = 1
    return tf.data.Dataset.from_tensor_slices((x.reshape(count, ROWS, WIDTH), y.reshape(count, ROWS, 1))).with_options(options)


def network(width=WIDTH, hidden=WIDTH, out=1):
    return keras.Sequential([keras.layers.Input((width,)), keras.layers.Dense(hidden, activation="relu"),
                             keras.layers.BatchNormalization(), keras.layers.Dense(out)])


def compiled(**options):
    model = network()
    model.compile(keras.optimizers.Adam(), "mse", metrics=["mae"], **{"jit_compile": False, **options})
    return model


def train(model, x, y, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


# One region that holds everything: between two, their addresses decide, which differ from run to run. What is left of the first one, of
# 2 MiB, is handed out whole.
tf.raw_ops.Empty(shape=[1 << 30], dtype=tf.uint8)
_rest_of_the_first_region = tf.raw_ops.Empty(shape=[1 << 20], dtype=tf.uint8)
