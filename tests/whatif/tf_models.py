"""Trains a small model with TensorFlow for a few steps: tf_models.py MODEL BATCH [eager|graph|xla] [OPTIMIZER] [STEPS] [LIMIT] [CHANGE=VALUE].
LIMIT: MiB for the pool on a GPU. Changes: accumulate=N, precision=bf16, checkpoint=all. Prints the peak that TensorFlow counted."""
import contextlib
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

keras, layers = tf.keras, tf.keras.layers


def dense():
    return keras.Sequential([keras.Input((64,)), layers.Dense(512, activation="relu"), layers.Dense(512, activation="relu"), layers.Dense(64)]), (64,), (64,)


def resnet():
    x = first = keras.Input((32, 32, 3))
    for width in (16, 32):
        x = layers.Conv2D(width, 3, strides=2, padding="same", activation="relu")(x)
        for _ in range(2):
            y = layers.BatchNormalization()(layers.Conv2D(width, 3, padding="same")(x))
            x = layers.Activation("relu")(layers.Add()([x, y]))
    return keras.Model(first, layers.Dense(10)(layers.GlobalAveragePooling2D()(x))), (32, 32, 3), (10,)


def transformer():
    x = first = keras.Input((32, 64))
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(64)(layers.Dense(256, activation="relu")(x)))
    return keras.Model(first, layers.Dense(64)(x)), (32, 64), (32, 64)


def lstm():
    return keras.Sequential([keras.Input((20, 32)), layers.LSTM(64, return_sequences=True), layers.LSTM(64), layers.Dense(8)]), (20, 32), (8,)


def unet():
    first = keras.Input((32, 32, 1))
    down = layers.Conv2D(16, 3, padding="same", activation="relu")(first)
    low = layers.Conv2D(32, 3, padding="same", activation="relu")(layers.MaxPooling2D()(down))
    up = layers.Conv2DTranspose(16, 2, strides=2, padding="same")(low)
    return keras.Model(first, layers.Conv2D(1, 1)(layers.Concatenate()([down, up]))), (32, 32, 1), (32, 32, 1)


class Sampling(layers.Layer):
    def call(self, inputs):
        mean, spread = inputs
        return mean + tf.exp(spread / 2) * tf.random.normal(tf.shape(mean))


def vae():
    first = keras.Input((784,))
    hidden = layers.Dense(256, activation="relu")(first)
    code = Sampling()([layers.Dense(16)(hidden), layers.Dense(16)(hidden)])
    return keras.Model(first, layers.Dense(784)(layers.Dense(256, activation="relu")(code))), (784,), (784,)


def optimizer_named(name, parts):
    made = keras.optimizers.SGD(momentum=0.9) if name == "momentum" else keras.optimizers.get(name)
    return made if parts == 1 else type(made).from_config({**made.get_config(), "gradient_accumulation_steps": parts})


def main(name, batch, mode="graph", optimizer="adam", steps="4", limit=None, accumulate="1", precision="fp32", checkpoint=""):
    gpus = tf.config.list_physical_devices("GPU")
    if limit:
        tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=int(limit))])
    # One op at a time: otherwise the peak depends on which one happens to start first.
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    if precision == "bf16":
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    with keras.RematScope(mode="full") if checkpoint else contextlib.nullcontext():
        model, inputs, outputs = globals()[name]()
    model.compile(optimizer_named(optimizer, int(accumulate)), "mse", jit_compile=mode == "xla", run_eagerly=mode == "eager")
    part = int(batch) // int(accumulate)
    for _ in range(int(steps) * int(accumulate)):
        model.train_on_batch(np.zeros((part, *inputs), "float32"), np.zeros((part, *outputs), "float32"))
    print(json.dumps({"peak": tf.config.experimental.get_memory_info("GPU:0" if gpus else "CPU:0")["peak"]}))


if __name__ == "__main__":
    main(*(word for word in sys.argv[1:] if "=" not in word), **dict(word.split("=") for word in sys.argv[1:] if "=" in word))
