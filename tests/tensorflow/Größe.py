"""Every fault that the Python side reports, in a program whose names are not ASCII: its file, functions, variables."""
import numpy as np
import tensorflow as tf

tabelle = np.ones((600, 600), "float32")
gewichte = tf.Variable(np.ones((256, 64)), name="größe", dtype=tf.float64)
modell = tf.keras.Sequential([tf.keras.layers.Dense(64, name="schicht"), tf.keras.layers.Dense(8, name="ausgang")], name="netz")
optimierer = tf.keras.optimizers.Adam()
verläufe = []


@tf.function
def nachschlagen(i):
    return tf.gather(tabelle, i)


@tf.function
def überholt(x, n):
    return x * n


@tf.function
def lerne(x, y):
    with tf.GradientTape() as band:
        verlust = tf.reduce_mean((modell(x) - y) ** 2)
    steigung = band.gradient(verlust, modell.trainable_variables)
    optimierer.apply_gradients(zip(steigung, modell.trainable_variables))
    return verlust


def tief(n):
    return tief(n - 1) if n else tf.random.normal([300, 100])


def main():
    quelle = tf.random.normal([2048, 1024])
    daten = tf.data.Dataset.from_tensor_slices(quelle).batch(16)
    next(iter(tf.data.Dataset.from_tensor_slices(np.zeros((2048, 1024), "float32")).batch(16).cache().prefetch(1)))
    nachschlagen(tf.constant([1]))
    for n in range(12):
        überholt(tf.ones([4]), n)
    tief(400)
    v = tf.Variable(1.0)
    for _ in range(5):
        with tf.GradientTape(persistent=True) as band:
            verlust = v * v
        band.gradient(verlust, v)
    y = tf.random.normal([16, 8])
    for schritt, stapel in enumerate(daten.take(24)):
        lerne(stapel, y)
        verläufe.append(tf.random.normal([64, 1024]) + float(schritt))
    gewichte.assign_add(gewichte)


main()
