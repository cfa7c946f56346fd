"""Programs as the tutorials of Keras have them, with data made up and few steps: no trouble in any, and the layers of `model.summary()`."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from corpus import program, run_all  # noqa: E402
from tf_made_up import PEAKS, STEPS, classes, images, of  # noqa: E402

keras, layers = tf.keras, tf.keras.layers


@program("tutorial", steps=STEPS, also=PEAKS)
def mnist_convnet():
    model = keras.Sequential([
        keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2), layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(2), layers.Flatten(), layers.Dropout(0.5), layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)
    model.fit(images(), classes(), batch_size=16, verbose=0)
    model.evaluate(images(32), classes(32), verbose=0)
    return of(model)


class Sampling(layers.Layer):
    def call(self, pair):
        mean, spread = pair
        return mean + tf.exp(0.5 * spread) * tf.random.normal(tf.shape(mean))


def encoder_and_decoder():
    entry = keras.Input((28, 28, 1))
    x = layers.Conv2D(16, 3, 2, "same", activation="relu")(entry)
    x = layers.Dense(16, activation="relu")(layers.Flatten()(x))
    mean, spread = layers.Dense(2, name="z_mean")(x), layers.Dense(2, name="z_log_var")(x)
    encoder = keras.Model(entry, [mean, spread, Sampling()([mean, spread])], name="encoder")
    latent = keras.Input((2,))
    x = layers.Reshape((14, 14, 16))(layers.Dense(14 * 14 * 16, activation="relu")(latent))
    decoder = keras.Model(latent, layers.Conv2DTranspose(1, 3, 2, "same", activation="sigmoid")(x), name="decoder")
    return encoder, decoder


class Vae(keras.Model):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.tracker = keras.metrics.Mean(name="loss")

    def train_step(self, data):
        with tf.GradientTape() as tape:
            mean, spread, z = self.encoder(data)
            loss = tf.reduce_mean(tf.square(self.decoder(z) - data)) - tf.reduce_mean(1 + spread - tf.square(mean) - tf.exp(spread))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


@program("tutorial", steps=STEPS, also=PEAKS)
def variational_autoencoder():
    """The parts are called without the model around them, and the decoder is used by itself afterwards."""
    model = Vae(*encoder_and_decoder())
    model.compile(keras.optimizers.Adam(), jit_compile=False)
    model.fit(images(), batch_size=16, verbose=0)
    model.decoder.predict(np.zeros((8, 2)), verbose=0)
    return of(model)


class Gan(keras.Model):
    def __init__(self, discriminator, generator):
        super().__init__()
        self.discriminator, self.generator = discriminator, generator

    def compile(self, d_optimizer, g_optimizer):
        super().compile(jit_compile=False)
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer

    def train_step(self, real):
        noise = tf.random.normal([16, 32])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.discriminator(self.generator(noise))) - tf.reduce_mean(self.discriminator(real))
        self.d_optimizer.apply_gradients(zip(tape.gradient(loss, self.discriminator.trainable_weights), self.discriminator.trainable_weights))
        with tf.GradientTape() as tape:
            other = -tf.reduce_mean(self.discriminator(self.generator(noise)))
        self.g_optimizer.apply_gradients(zip(tape.gradient(other, self.generator.trainable_weights), self.generator.trainable_weights))
        return {"d_loss": loss, "g_loss": other}


@program("tutorial", steps=STEPS, also=PEAKS)
def dcgan_with_its_own_train_step():
    discriminator = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(16, 4, 2, "same"), layers.LeakyReLU(), layers.Flatten(), layers.Dense(1)],
                                     name="discriminator")
    generator = keras.Sequential([keras.Input((32,)), layers.Dense(14 * 14 * 8), layers.Reshape((14, 14, 8)),
                                  layers.Conv2DTranspose(1, 4, 2, "same", activation="sigmoid")], name="generator")
    model = Gan(discriminator, generator)
    model.compile(keras.optimizers.Adam(1e-4), keras.optimizers.Adam(1e-4))
    model.fit(images(), batch_size=16, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def autoencoder():
    entry = keras.Input((28, 28, 1))
    x = layers.MaxPooling2D(2, padding="same")(layers.Conv2D(16, 3, activation="relu", padding="same")(entry))
    x = layers.Conv2DTranspose(16, 3, 2, "same", activation="relu")(x)
    model = keras.Model(entry, layers.Conv2D(1, 3, activation="sigmoid", padding="same")(x))
    model.compile("adam", "binary_crossentropy", jit_compile=False)
    x = images()
    model.fit(x, x, batch_size=16, verbose=0, validation_data=(x[:16], x[:16]))
    model.predict(x[:32], verbose=0)
    return of(model)


class TransformerBlock(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, width)
        self.feed = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(width)])
        self.norm1, self.norm2 = layers.LayerNormalization(), layers.LayerNormalization()

    def call(self, x):
        x = self.norm1(x + self.attention(x, x))
        return self.norm2(x + self.feed(x))


@program("tutorial", steps=STEPS, also=PEAKS)
def text_classification_with_transformer():
    entry = keras.Input((32,), dtype="int32")
    x = TransformerBlock(32, 2)(layers.Embedding(1000, 32)(entry))
    x = layers.Dense(20, activation="relu")(layers.GlobalAveragePooling1D()(x))
    model = keras.Model(entry, layers.Dense(2, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    model.fit(np.random.randint(0, 1000, (STEPS * 16, 32)), classes(most=2), batch_size=16, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def character_level_lstm():
    model = keras.Sequential([keras.Input((20, 30)), layers.LSTM(64), layers.Dense(30, activation="softmax")])
    model.compile(keras.optimizers.RMSprop(0.01), "sparse_categorical_crossentropy", jit_compile=False)
    model.fit(np.random.rand(STEPS * 16, 20, 30), classes(most=30), batch_size=16, verbose=0)
    for _ in range(3):
        model.predict(np.zeros((1, 20, 30)), verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def convolutional_lstm():
    model = keras.Sequential([keras.Input((4, 16, 16, 1)), layers.ConvLSTM2D(8, 3, padding="same", return_sequences=True), layers.BatchNormalization(),
                              layers.Conv3D(1, 3, activation="sigmoid", padding="same")])
    model.compile("adam", "binary_crossentropy", jit_compile=False)
    x = np.random.rand(STEPS * 4, 4, 16, 16, 1).astype("float32")
    model.fit(x, x, batch_size=4, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def siamese_network():
    """One embedding, called twice in each step."""
    entry = keras.Input((28, 28, 1))
    embedding = keras.Model(entry, layers.Dense(16)(layers.Flatten()(layers.Conv2D(8, 5, activation="tanh")(entry))), name="embedding")
    first, second = keras.Input((28, 28, 1)), keras.Input((28, 28, 1))
    far = layers.Subtract(name="difference")([embedding(first), embedding(second)])
    model = keras.Model([first, second], layers.Dense(1, activation="sigmoid")(far))
    model.compile("rmsprop", "binary_crossentropy", jit_compile=False)
    model.fit([images(), images()], classes(most=2), batch_size=16, verbose=0)
    return of(model)


class Distiller(keras.Model):
    def __init__(self, student, teacher):
        super().__init__()
        self.student, self.teacher = student, teacher

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False, training=True):
        return tf.reduce_mean(tf.square(self.teacher(x, training=False) - y_pred))

    def call(self, x):
        return self.student(x)


@program("tutorial", steps=2 * STEPS, also=PEAKS)
def knowledge_distillation():
    def net(name, width):
        return keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(width, 3, 2, "same"), layers.LeakyReLU(), layers.Flatten(), layers.Dense(10)], name=name)

    teacher, student = net("teacher", 32), net("student", 8)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    teacher.compile("adam", loss, jit_compile=False)
    teacher.fit(images(), classes(), batch_size=16, verbose=0)
    model = Distiller(student, teacher)
    model.compile("adam", jit_compile=False)
    model.fit(images(), classes(), batch_size=16, verbose=0)
    return of(model) + of(teacher)


@program("tutorial", steps=2 * STEPS, also=PEAKS)
def transfer_learning():
    base = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(16, 3, activation="relu"), layers.BatchNormalization(), layers.GlobalAveragePooling2D(),
                             layers.Dense(256, activation="relu")], name="base")
    base.trainable = False
    entry = keras.Input((28, 28, 1))
    model = keras.Model(entry, layers.Dense(1)(base(entry, training=False)))
    for trainable in (False, True):
        base.trainable = trainable
        model.compile(keras.optimizers.Adam(1e-5), "mse", jit_compile=False)
        model.fit(images(), np.ones((STEPS * 16, 1)), batch_size=16, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def image_segmentation():
    x = entry = keras.Input((32, 32, 3))
    x = layers.Activation("relu")(layers.BatchNormalization()(layers.Conv2D(16, 3, 2, "same")(x)))
    before = x
    x = layers.BatchNormalization()(layers.SeparableConv2D(32, 3, padding="same")(x))
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    x = layers.add([x, layers.Conv2D(32, 1, 2, "same")(before)])
    x = layers.UpSampling2D(4)(layers.Conv2DTranspose(16, 3, padding="same")(x))
    model = keras.Model(entry, layers.Conv2D(3, 3, activation="softmax", padding="same")(x))
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    model.fit(images(size=32, channels=3), np.random.randint(0, 3, (STEPS * 16, 32, 32)), batch_size=16, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def loop_from_scratch():
    model = keras.Sequential([keras.Input((784,)), layers.Dense(64, activation="relu"), layers.Dense(10)])
    optimizer, loss_of = keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    metric = keras.metrics.SparseCategoricalAccuracy()
    data = tf.data.Dataset.from_tensor_slices((images().reshape(-1, 784), classes())).shuffle(128).batch(16)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_of(y, logits)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_weights), model.trainable_weights))
        metric.update_state(y, logits)
        return loss

    for x, y in data:
        train_step(x, y)
    return of(model)


if __name__ == "__main__":
    run_all()
