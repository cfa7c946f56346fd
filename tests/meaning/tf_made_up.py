"""Data for programs that need some, the layers of a model as Keras lists them, and functions whose ops run in one order."""
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

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


def in_sequence():
    """TensorFlow's usual executor starts ops as threads are free: which peak a step has depends on that."""
    context.context().function_call_options.executor_type = "SINGLE_THREADED_EXECUTOR"


def made_batches(count, rows):
    """Batches that are made when they are asked for, none ahead of time."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    return tf.data.Dataset.range(count).map(lambda i: (tf.ones([rows, 64]), tf.ones([rows, 1]))).with_options(options)
