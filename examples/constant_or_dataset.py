"""A NumPy array used inside a tf.function becomes a constant of its graph: one copy in the graph and one on the device, forever.

    vramscope run -o runs/constant -- python examples/constant_or_dataset.py
    vramscope summary runs/constant
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import sys

import numpy as np
import tensorflow as tf

import vramscope
import vramscope.tf as vtf

ROWS, WIDTH, BATCH = 8192, 256, 64                        # 8 MiB
examples = np.random.default_rng(1).normal(size=(ROWS, WIDTH)).astype("float32")
weights = tf.Variable(tf.random.normal([WIDTH, 16]))
device = vtf.default_device()


@tf.function
def from_constant(first):
    batch = tf.constant(examples)[first:first + BATCH]    # the defect: 8 MiB goes into the graph
    return tf.reduce_sum(tf.matmul(batch, weights))


@tf.function
def from_argument(batch):
    return tf.reduce_sum(tf.matmul(batch, weights))


def with_constant():
    for first in range(0, 20 * BATCH, BATCH):
        from_constant(tf.constant(first))


def with_dataset():
    for batch in tf.data.Dataset.from_tensor_slices(examples).batch(BATCH).take(20):
        from_argument(batch)


def kept_and_peak(loop):
    before = vramscope.memory_info(device).current
    vramscope.reset_peak(device)
    loop()
    info = vramscope.memory_info(device)
    return (info.current - before) / 2**20, (info.peak - before) / 2**20


for name, loop in (("tf.data", with_dataset), ("constant", with_constant)):
    if name in sys.argv[1:] or len(sys.argv) == 1:
        kept, peak = kept_and_peak(loop)
        print(f"{name:9s} keeps {kept:6.2f} MiB on the device, {peak:6.2f} MiB at its peak")
print(f"The array itself is {examples.nbytes / 2**20:.0f} MiB.")
