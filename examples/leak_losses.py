"""A common leak: every step's loss is kept as a tensor, and with it memory on the device.

    vramscope run -o runs/leak -- python examples/leak_losses.py
    vramscope summary runs/leak
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU

import keras
import tensorflow as tf

import vramscope
import vramscope.tf as vtf

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(16)])
optimizer = keras.optimizers.Adam()
device = vtf.default_device()


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        each = (model(x, training=True) - y) ** 2               # one loss per example and output
        loss = tf.reduce_mean(each)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return each


losses = []
first = None
for step in range(60):
    x, y = tf.random.normal([512, 64]), tf.random.normal([512, 16])
    losses.append(train(x, y))                                  # the defect; float(tf.reduce_mean(...)) would keep a number instead
    now = vramscope.memory_info(device).current
    first = first or now
    if step % 20 == 19:
        print(f"step {step + 1}: {now / 2**20:.2f} MiB in use, {(now - first) / step / 1024:.1f} KiB more per step")
print(f"who holds the last one: {vramscope.who_holds(losses[-1])}")
