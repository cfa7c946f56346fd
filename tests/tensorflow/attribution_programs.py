"""Trainings. Each prints what the model itself says: the bytes of its variables, of its optimizer's, and its layers' names.

    attribution_programs.py cnn | transformer | custom_loop | ...
"""
import json
import os
import sys

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

keras = tf.keras
layers = keras.layers
STEPS, BATCH = 12, 32


def cnn():
    model = keras.Sequential([
        keras.Input((32, 32, 3)), layers.Conv2D(32, 3, activation="relu"), layers.BatchNormalization(),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(128, activation="relu"),
        layers.Dropout(0.2), layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    model.fit(np.zeros((STEPS * BATCH, 32, 32, 3), "float32"), np.zeros(STEPS * BATCH), batch_size=BATCH, verbose=0)
    return model, model.optimizer


def transformer(width=64, blocks=2, length=64, words=500):
    tokens = keras.Input((length,), dtype="int32")
    x = layers.Embedding(words, width)(tokens)
    for _ in range(blocks):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, width // 4)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x)))
    model = keras.Model(tokens, layers.Dense(words)(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    text = np.random.default_rng(1).integers(0, words, (STEPS * BATCH, length + 1))
    model.fit(text[:, :-1], text[:, 1:], batch_size=BATCH, verbose=0)
    return model, model.optimizer


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = layers.Dense(512, activation="relu"), layers.Dense(512, activation="relu")
        self.head = layers.Dense(10)

    def call(self, x):
        return self.head(self.second(self.first(x)))


def custom_loop():
    model, optimizer = Net(), keras.optimizers.SGD(momentum=0.9)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    data = tf.data.Dataset.from_tensor_slices((tf.zeros([STEPS * 256, 128]), tf.zeros([STEPS * 256, 10])))
    for x, y in data.batch(256):
        train(x, y)
    return model, optimizer


def perceptron():
    return keras.Sequential([keras.Input((256,)), layers.Dense(256, activation="relu"), layers.Dense(256, activation="relu"),
                             layers.Dense(8)])


def examples(count):
    return np.zeros((count, 256), "float32"), np.zeros((count, 8), "float32")


def fitted(optimizer="adam", **options):
    model = perceptron()
    model.compile(optimizer, "mse", jit_compile=False, **options)
    model.fit(*examples(2 * STEPS * BATCH), batch_size=BATCH, verbose=0)
    return model, model.optimizer


def steps_per_execution():
    return fitted(steps_per_execution=3)


def accumulation():
    return fitted(keras.optimizers.Adam(gradient_accumulation_steps=4))


def mirrored():
    cpu, = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        return fitted()


def batches():
    model = perceptron()
    model.compile("adam", "mse", jit_compile=False)
    for _ in range(STEPS):
        model.train_on_batch(*examples(BATCH))
    return model, model.optimizer


class Block(layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.first, self.second, self.norm = layers.Dense(width), layers.Dense(width), layers.LayerNormalization()

    def call(self, x):
        return self.norm(x + self.second(tf.nn.gelu(self.first(x))))


class Stack(layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = Block(width), Block(width)

    def call(self, x):
        return self.two(self.one(x))


class Nested(keras.Model):
    def __init__(self):
        super().__init__()
        self.bottom, self.top, self.head = Stack(256), Stack(256), layers.Dense(8)

    def call(self, x):
        return self.head(self.top(self.bottom(x)))


def nested():
    """In eager mode, in a loop of its own."""
    model, optimizer = Nested(), keras.optimizers.Adam()
    x, y = map(tf.constant, examples(256))
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return model, optimizer


def size(variable):
    return int(np.prod(variable.shape)) * tf.as_dtype(variable.dtype).size


def main():
    model, optimizer = globals()[sys.argv[1]]()
    slots = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    sparse = [layer.embeddings for layer in model.layers if isinstance(layer, layers.Embedding)]
    print(json.dumps({
        "model": model.name, "layers": [layer.name for layer in model.layers],
        "parameters": sum(map(size, model.trainable_variables)), "slots": sum(map(size, slots)),
        "dense_gradients": sum(map(size, model.trainable_variables)) - sum(map(size, sparse)),
    }))


if __name__ == "__main__":
    main()
