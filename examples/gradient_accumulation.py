"""A large batch in four parts: the activations of a quarter, and one more copy of the gradients.

    python examples/gradient_accumulation.py
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import keras
import tensorflow as tf

import vramscope
import vramscope.tf as vtf

device = vtf.default_device()
model = keras.Sequential([keras.Input((128,))] + [keras.layers.Dense(256, activation="relu") for _ in range(4)] + [keras.layers.Dense(8)])
optimizer = keras.optimizers.SGD()
x, y = tf.random.normal([4096, 128]), tf.random.normal([4096, 8])


@tf.function
def gradients_of(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    return tape.gradient(loss, model.trainable_variables)


def at_once():
    optimizer.apply_gradients(zip(gradients_of(x, y), model.trainable_variables))


def in_parts(parts=4):
    total = [tf.zeros_like(v) for v in model.trainable_variables]
    for part_x, part_y in zip(tf.split(x, parts), tf.split(y, parts)):
        total = [t + g / parts for t, g in zip(total, gradients_of(part_x, part_y))]
    optimizer.apply_gradients(zip(total, model.trainable_variables))


def peak(step):
    step()
    before = vramscope.memory_info(device).current
    vramscope.reset_peak(device)
    step()
    return (vramscope.memory_info(device).peak - before) / 2**20


print(f"peak above the parameters: 4096 examples at once {peak(at_once):.1f} MiB, in four parts {peak(in_parts):.1f} MiB "
      f"(the gradients themselves are {model.count_params() * 4 / 2**20:.1f} MiB)")
