"""Building a graph takes no memory on the device; running it does.

    python examples/graph_construction.py
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import tensorflow as tf

import vramscope
import vramscope.tf as vtf

device = vtf.default_device()
used = lambda: vramscope.memory_info(device).current / 2**20


@tf.function
def work(n):
    total = tf.zeros([])
    for _ in range(8):
        a = tf.random.normal([n, n])
        total += tf.reduce_sum(tf.matmul(a, a))
    return total


tf.zeros([1])                                   # starts the device
before = used()
traced = work.get_concrete_function(tf.TensorSpec([], tf.int32))
after_building = used()
vramscope.reset_peak(device)
traced(tf.constant(512))
print(f"before {before:.2f} MiB, after tracing {len(traced.graph.get_operations())} ops {after_building:.2f} MiB, "
      f"peak while it ran {vramscope.memory_info(device).peak / 2**20:.2f} MiB, afterwards {used():.2f} MiB")

graph = tf.Graph()
with graph.as_default():
    b = tf.random.normal([1024, 1024])
    c = tf.reduce_sum(b)
after_building = used()
vramscope.reset_peak(device)
with tf.compat.v1.Session(graph=graph) as session:
    session.run(c)
print(f"the same in a v1 graph: {after_building:.2f} MiB after building, peak {vramscope.memory_info(device).peak / 2**20:.2f} MiB while it ran")
