"""Data for programs that need some, and the layers of a model as Keras lists them."""
import numpy as np
import tensorflow as tf

keras = tf.keras
STEPS = 8
PEAKS = ("peak-is-start", "peak-is-evaluation")        # true of tutorials that predict or evaluate after a short training


def of(model, path=""):
    """As summary(expand_nested=True) lists them."""
    found = []
    for layer in model.layers:
        name = f"{path}/{layer.name}" if path else layer.name
        found += [name, *of(layer, name)] if isinstance(layer, keras.Model) else [name]
    return found


def images(count=STEPS * 16, size=28, channels=1):
    return np.random.rand(count, size, size, channels).astype("float32")


def classes(count=STEPS * 16, most=10):
    return np.random.randint(0, most, (count,))
