"""A custom training loop: what each part of a step holds, read without waiting for the device.

    python examples/custom_loop.py
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import keras
import tensorflow as tf

import vramscope
import vramscope.tf as vtf

model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(1024, activation="relu"),
                          keras.layers.Dense(10)])
optimizer = keras.optimizers.Adam()
data = tf.data.Dataset.from_tensor_slices((tf.random.normal([2048, 256]), tf.random.normal([2048, 10]))).batch(256)


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        with tf.control_dependencies([loss]):                   # after the forward pass ...
            after_forward = vtf.bytes_in_use()
        with tf.control_dependencies([after_forward]):          # ... and before the backward pass
            loss = tf.identity(loss)
    gradients = tape.gradient(loss, model.trainable_variables)
    with tf.control_dependencies(gradients):
        after_backward = vtf.bytes_in_use()
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return after_forward, after_backward


device = vtf.default_device()
for number, (x, y) in enumerate(data):
    vramscope.reset_peak(device)
    forward, backward = train(x, y)
    info = vramscope.memory_info(device)
    if number in (0, 1, 7):
        print(f"step {number + 1}: after forward {int(forward) / 2**20:6.2f} MiB, after backward {int(backward) / 2**20:6.2f} MiB, "
              f"between steps {info.current / 2**20:6.2f} MiB, peak {info.peak / 2**20:6.2f} MiB")
print("The difference between a step's peak and what is left between steps is what the step itself needs.")
