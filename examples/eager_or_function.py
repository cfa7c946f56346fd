"""The same step eagerly and as a tf.function: a graph frees each tensor after its last use, eager code when Python drops its last reference.

    python examples/eager_or_function.py
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import tensorflow as tf

import vramscope
import vramscope.tf as vtf

device = vtf.default_device()
x = tf.random.normal([1024, 512])
w = [tf.Variable(tf.random.normal([512, 512])) for _ in range(4)]


def forward(x):
    first = tf.nn.relu(tf.matmul(x, w[0]))
    second = tf.nn.relu(tf.matmul(first, w[1]))
    third = tf.nn.relu(tf.matmul(second, w[2]))
    return tf.reduce_sum(tf.matmul(third, w[3]))        # first, second and third have names: eager code keeps them until the end


def peak(step):
    step(x)                                             # tracing is not part of the comparison
    before = vramscope.memory_info(device).current
    vramscope.reset_peak(device)
    step(x)
    return (vramscope.memory_info(device).peak - before) / 2**20


print(f"one step on top of the parameters: eager {peak(forward):.1f} MiB, tf.function {peak(tf.function(forward)):.1f} MiB")
