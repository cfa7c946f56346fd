"""NumPy defaults to float64; if that reaches the model, everything is twice as large.

    vramscope run -o runs/float64 -- python examples/float64.py
    vramscope summary runs/float64
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import numpy as np
import tensorflow as tf

import vramscope
import vramscope.tf as vtf

random = np.random.default_rng(1)
device = vtf.default_device()


def train(x, steps=12):
    hidden = tf.Variable(random.normal(size=(256, 1024)).astype(x.dtype))      # the defect takes effect here
    out = tf.Variable(random.normal(size=(1024, 8)).astype(x.dtype))

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            activation = tf.nn.relu(tf.matmul(batch, hidden))
            loss = tf.reduce_mean(tf.matmul(activation, out) ** 2)
        for variable, gradient in zip((hidden, out), tape.gradient(loss, (hidden, out))):
            variable.assign_sub(gradient * tf.cast(1e-4, gradient.dtype))

    before, peaks = vramscope.memory_info(device).current, []
    for _ in range(steps):
        vramscope.reset_peak(device)
        step(tf.constant(x))
        peaks.append(vramscope.memory_info(device).peak - before)
    return np.median(peaks)                                # the ops of a graph run in another order each time


x = random.normal(size=(1024, 256))                       # float64 is NumPy's default
small, large = train(x.astype("float32")), train(x)
print(f"peak with float32 {small / 2**20:.1f} MiB, with float64 {large / 2**20:.1f} MiB: {large / small:.2f} times as much")
