"""Trainings of a few steps in TensorFlow that say what their memory is for.

    tf_programs.py graph|eager|xla resnet transformer ...
"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance"))
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from claims import run_each  # noqa: E402
from numpy_alignment import never_aligned  # noqa: E402
from tf_oracle import Oracle, address_of  # noqa: E402

keras = tf.keras
layers = keras.layers
STEPS = 8
EAGER, XLA = sys.argv[1] == "eager", sys.argv[1] == "xla"
rng = np.random.default_rng(1)
never_aligned()     # the weights of another network are arrays: where TensorFlow shares their memory, they are not in its pool


def floats(*shape):
    return rng.random((shape[0] * STEPS, *shape[1:]), dtype="float32")


def whole(most, *shape):
    return rng.integers(0, most, (shape[0] * STEPS, *shape[1:]), dtype="int32")


def fit(model, data, batch, loss=None, optimizer="adam"):
    model.compile(optimizer, loss, jit_compile=XLA, run_eagerly=EAGER)
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(batch, drop_remainder=True)
    model.fit(dataset, verbose=0, callbacks=[oracle.after_each_step(model)])


CLASSES = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def mlp():
    model = keras.Sequential([keras.Input((512,)), layers.Dense(1024, activation="relu"), layers.Dense(1024, activation="relu"),
                              layers.Dense(100)])
    fit(model, (floats(256, 512), whole(100, 256)), 256, CLASSES)


def cnn():
    model = keras.Sequential([
        keras.Input((32, 32, 3)), layers.Conv2D(32, 3, activation="relu"), layers.BatchNormalization(), layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dropout(0.2), layers.Dense(10)])
    fit(model, (floats(32, 32, 32, 3), whole(10, 32)), 32, CLASSES)


def resnet():
    x = entry = keras.Input((32, 32, 3))
    for width, stride in ((32, 1), (64, 2), (128, 2)):
        y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(width, 3, stride, "same", use_bias=False)(x)))
        y = layers.BatchNormalization()(layers.Conv2D(width, 3, 1, "same", use_bias=False)(y))
        x = layers.ReLU()(layers.Add()([y, layers.Conv2D(width, 1, stride, "same", use_bias=False)(x)]))
    model = keras.Model(entry, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    fit(model, (floats(32, 32, 32, 3), whole(10, 32)), 32, CLASSES, keras.optimizers.SGD(0.1, momentum=0.9))


def transformer(width=128, blocks=2, length=64, words=1000):
    tokens = keras.Input((length,), dtype="int32")
    x = layers.Embedding(words, width)(tokens)
    for _ in range(blocks):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, width // 4)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x)))
    fit(keras.Model(tokens, layers.Dense(words)(x)), (whole(words, 16, length), whole(words, 16, length)), 16, CLASSES)


def lstm():
    model = keras.Sequential([keras.Input((32,), dtype="int32"), layers.Embedding(2000, 128), layers.LSTM(256, return_sequences=True),
                              layers.Dense(50)])
    fit(model, (whole(2000, 32, 32), whole(50, 32, 32)), 32, CLASSES, "rmsprop")


def unet():
    entry = keras.Input((64, 64, 3))
    a = layers.Conv2D(32, 3, padding="same", activation="relu")(entry)
    b = layers.Conv2D(64, 3, padding="same", activation="relu")(layers.MaxPooling2D()(a))
    c = layers.Conv2D(128, 3, padding="same", activation="relu")(layers.MaxPooling2D()(b))
    d = layers.Concatenate()([layers.Conv2DTranspose(64, 2, 2)(c), b])
    d = layers.Conv2D(64, 3, padding="same", activation="relu")(d)
    e = layers.Concatenate()([layers.Conv2DTranspose(32, 2, 2)(d), a])
    fit(keras.Model(entry, layers.Conv2D(3, 1)(e)), (floats(8, 64, 64, 3), floats(8, 64, 64, 3)), 8, "mse")


def embedding():
    model = keras.Sequential([keras.Input((100,), dtype="int32"), layers.Embedding(20000, 64), layers.GlobalAveragePooling1D(),
                              layers.Dense(256, activation="relu"), layers.Dense(2)])
    fit(model, (whole(20000, 256, 100), whole(2, 256)), 256, CLASSES)


def mobilenet():
    x = entry = keras.Input((32, 32, 3))
    x = layers.Conv2D(32, 3, padding="same")(x)
    for width, stride in ((64, 1), (128, 2), (128, 1)):
        x = layers.ReLU(6)(layers.BatchNormalization()(layers.DepthwiseConv2D(3, stride, "same", use_bias=False)(x)))
        x = layers.ReLU(6)(layers.BatchNormalization()(layers.Conv2D(width, 1, use_bias=False)(x)))
    fit(keras.Model(entry, layers.Dense(10)(layers.GlobalAveragePooling2D()(x))), (floats(32, 32, 32, 3), whole(10, 32)), 32, CLASSES)


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = layers.Dense(1024, activation="gelu"), layers.Dense(1024, activation="tanh"), layers.LayerNormalization()
        self.head = layers.Dense(10)

    def call(self, x):
        return self.head(self.norm(self.second(self.first(x))))


def subclassed():
    fit(Net(), (floats(256, 512), whole(10, 256)), 256, CLASSES)


class Vae(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([keras.Input((784,)), layers.Dense(512, activation="relu"), layers.Dense(128)])
        self.decoder = keras.Sequential([keras.Input((64,)), layers.Dense(512, activation="relu"), layers.Dense(784, activation="sigmoid")])

    def train_step(self, data):
        x = data[0] if isinstance(data, tuple) else data
        with tf.GradientTape() as tape:
            mean, spread = tf.split(self.encoder(x), 2, 1)
            y = self.decoder(mean + tf.exp(0.5 * spread) * tf.random.normal(tf.shape(mean)))
            loss = tf.reduce_mean(keras.losses.binary_crossentropy(x, y)) - 0.5 * tf.reduce_mean(1 + spread - mean ** 2 - tf.exp(spread))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights))
        return {"loss": loss}

    def call(self, x):
        return self.decoder(tf.split(self.encoder(x), 2, 1)[0])


def vae():
    fit(Vae(), (floats(512, 784),), 512)


class Gan(keras.Model):
    def __init__(self):
        super().__init__()
        self.maker = keras.Sequential([keras.Input((64,)), layers.Dense(512, activation="relu"), layers.Dense(784, activation="tanh")])
        self.critic = keras.Sequential([keras.Input((784,)), layers.Dense(512), layers.LeakyReLU(0.2), layers.Dense(1)])
        self.of_maker, self.of_critic = keras.optimizers.Adam(), keras.optimizers.Adam()

    def train_step(self, data):
        real = data[0]
        noise = tf.random.normal((256, 64))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(-self.critic(real))) + tf.reduce_mean(tf.nn.softplus(self.critic(self.maker(noise))))
        weights = self.critic.trainable_weights
        self.of_critic.apply_gradients(zip(tape.gradient(loss, weights), weights))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(-self.critic(self.maker(noise))))
        weights = self.maker.trainable_weights
        self.of_maker.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"loss": loss}

    def call(self, x):
        return self.critic(x)


def gan():
    model = Gan()
    model.compile("sgd", jit_compile=XLA, run_eagerly=EAGER)
    dataset = tf.data.Dataset.from_tensor_slices((floats(256, 784),)).batch(256, drop_remainder=True)
    model.fit(dataset, verbose=0, callbacks=[oracle.after_each_step(model, model.of_maker, model.of_critic)])


def custom_loop():
    """A loop of its own around one function, or in eager mode."""
    model, optimizer = Net(), keras.optimizers.Adam()

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = CLASSES(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    train = step if EAGER else tf.function(step, jit_compile=XLA)
    for _ in range(STEPS):
        x, y = tf.constant(rng.random((256, 512), "float32")), tf.constant(rng.integers(0, 10, 256, dtype="int32"))
        oracle.inputs(x, y)
        train(x, y)
        oracle.look(model, optimizer)


def accumulation():
    model = keras.Sequential([keras.Input((512,)), layers.Dense(1024, activation="relu"), layers.Dense(1024, activation="relu"), layers.Dense(100)])
    fit(model, (floats(64, 512), whole(100, 64)), 64, CLASSES, keras.optimizers.Adam(gradient_accumulation_steps=2))
    del oracle.facts["optimizer state"]     # after an update, the sums of gradients share the zeros of the graph


def averaged():
    """The optimizer keeps moving averages of the weights."""
    model = keras.Sequential([keras.Input((512,)), layers.Dense(1024, activation="relu"), layers.Dense(1024, activation="relu"), layers.Dense(100)])
    fit(model, (floats(64, 512), whole(100, 64)), 64, CLASSES, keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True))


def mixed():
    """Weights of float32, everything else of float16, and a scale of the loss."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    x = entry = keras.Input((512,))
    for _ in range(2):
        x = layers.LayerNormalization()(layers.Dense(1024, activation="relu")(x))
    model = keras.Model(entry, layers.Dense(100, dtype="float32")(x))
    fit(model, (floats(128, 512), whole(100, 128)), 128, CLASSES)
    assert type(model.optimizer).__name__ == "LossScaleOptimizer"


def target_network():
    """A network whose weights are now and then those of another, which is trained (deep Q-learning)."""
    def of_actions():
        return keras.Sequential([keras.Input((64,)), layers.Dense(1024, activation="relu"), layers.Dense(512, activation="relu"), layers.Dense(4)])

    model, target, optimizer = of_actions(), of_actions(), keras.optimizers.Adam()
    target.set_weights(model.get_weights())

    def step(state, action, later):
        wanted = 0.9 * tf.reduce_max(target(later), 1)
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(model(state) * tf.one_hot(action, 4), 1)
            loss = tf.reduce_mean((wanted - value) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    train = step if EAGER else tf.function(step, jit_compile=XLA)
    for i in range(STEPS):
        state, action, later = (tf.constant(made[:128]) for made in (floats(128, 64), whole(4, 128), floats(128, 64)))
        oracle.inputs(state, action, later)
        train(state, action, later)
        oracle.look(model, optimizer)
        if i % 3 == 2:
            target.set_weights(model.get_weights())
        oracle.facts["parameters"] *= 2
        oracle.claim("parameters", *(address_of(variable.value) for variable in target.variables))


def run(name):
    global oracle
    oracle = Oracle()
    keras.utils.set_random_seed(0)
    globals()[name]()
    oracle.note_graphs()
    return oracle


if __name__ == "__main__":
    run_each(sys.argv[2:], run)
