"""A Python number as an argument: the function is traced again for each value, and every trace keeps its graph.

    vramscope run -o runs/retracing -- python examples/retracing.py
    vramscope summary runs/retracing
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import tensorflow as tf

weights = tf.Variable(tf.random.normal([256, 256]))
x = tf.random.normal([64, 256])


@tf.function                                             # the defect: called with Python numbers, it is traced for each one
def step(x, number):
    return tf.reduce_sum(tf.matmul(x, weights)) * tf.cast(number, tf.float32)


for number in range(40):
    step(x, number)                                      # tf.constant(number) would be traced once
print(f"{step.experimental_get_tracing_count()} traces in 40 steps")
