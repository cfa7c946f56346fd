"""A persistent tape keeps all activations until it is deleted: through the optimizer's update and into the next step.

    vramscope run -o runs/tape -- python examples/persistent_tape.py
    vramscope summary runs/tape
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import keras
import tensorflow as tf

import vramscope
import vramscope.tf as vtf

model = keras.Sequential([keras.Input((128,))] + [keras.layers.Dense(512, activation="relu") for _ in range(6)] + [keras.layers.Dense(4)])
optimizer = keras.optimizers.SGD()
x, y = tf.random.normal([1024, 128]), tf.random.normal([1024, 4])
device = vtf.default_device()


def held_after_a_step(persistent):
    for step in range(16):
        with tf.GradientTape(persistent=persistent) as tape:      # the defect
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return vramscope.memory_info(device).current


ordinary, kept = held_after_a_step(False), held_after_a_step(True)
print(f"held after a step with an ordinary tape {ordinary / 2**20:.1f} MiB, with a persistent one {kept / 2**20:.1f} MiB")
print("`del tape` after the last gradient, or a tape that is not persistent, frees the difference.")
