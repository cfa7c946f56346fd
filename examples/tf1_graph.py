"""A graph in the style of TensorFlow 1: the ops that tf.contrib.memory_stats had, in a tf.compat.v1.Session.

    python examples/tf1_graph.py
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import threading

import tensorflow as tf

import vramscope.tf as vtf

v1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    x = tf.random.normal([1024, 1024])
    y = tf.matmul(x, x)
    with tf.control_dependencies([y]):                  # without it, the op may run before anything else
        both_alive = vtf.bytes_in_use()
    with tf.control_dependencies([both_alive]):
        result = tf.reduce_sum(y) + tf.reduce_sum(x)
    now, most, limit = vtf.bytes_in_use(), vtf.max_bytes_in_use(), vtf.bytes_limit()

with v1.Session(graph=graph) as session:
    alive = session.run([both_alive, result])[0]
    print(f"while two matrices of 4 MiB are alive: {alive / 2**20:.2f} MiB")
    print(f"between two runs: {session.run(now) / 2**20:.2f} MiB, most so far {session.run(most) / 2**20:.2f} MiB, "
          f"limit {session.run(limit) / 2**30:.0f} GiB")

    # A second thread reads while the first one computes: each value is the one at that moment.
    values, done = [], threading.Event()

    def watch():
        while not done.is_set():
            values.append(session.run(now))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(10):
        session.run(result)
    done.set()
    watcher.join()
    print(f"a second thread saw between {min(values) / 2**20:.2f} and {max(values) / 2**20:.2f} MiB in {len(values)} readings")
