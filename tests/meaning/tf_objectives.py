"""Programs of Keras' tutorials that train other things than one model by one loss: several optimizers, inner loops, images, flows. No trouble in any, and
the layers of `model.summary()`."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from corpus import program, run_all  # noqa: E402
from tf_made_up import PEAKS, STEPS, classes, images, of  # noqa: E402

keras, layers = tf.keras, tf.keras.layers
BATCH = 16


class Coupling(keras.Model):
    """Half of the values scale and move the other half."""
    def __init__(self):
        super().__init__()
        self.scale = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(8, activation="tanh")])
        self.move = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(8)])

    def call(self, x):
        fixed, other = tf.split(x, 2, 1)
        scale = self.scale(fixed)
        return tf.concat([other * tf.exp(scale) + self.move(fixed), fixed], 1), tf.reduce_sum(scale, 1)


@program("tutorial", steps=STEPS, also=PEAKS)
def density_with_a_normalizing_flow():
    class Flow(keras.Model):
        def __init__(self):
            super().__init__()
            self.couplings = [Coupling() for _ in range(3)]

        def loss_of(self, x):
            volume = 0.0
            for coupling in self.couplings:
                x, more = coupling(x)
                volume += more
            return tf.reduce_mean(0.5 * tf.reduce_sum(x ** 2, 1) - volume)

        def train_step(self, x):
            with tf.GradientTape() as tape:
                loss = self.loss_of(x)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {"loss": loss}

        def test_step(self, x):
            return {"loss": self.loss_of(x)}

    model = Flow()
    model.compile("adam", jit_compile=False)
    x = np.random.rand(STEPS * BATCH, 16).astype("float32")
    model.fit(x, batch_size=BATCH, validation_data=(x[:BATCH],), verbose=0)


class Quantizer(layers.Layer):
    def __init__(self):
        super().__init__(name="quantizer")
        self.codes = self.add_weight(shape=(16, 64), initializer="random_uniform", name="codes")

    def call(self, x):
        flat = tf.reshape(x, [-1, 16])
        distances = tf.reduce_sum(flat ** 2, 1, keepdims=True) + tf.reduce_sum(self.codes ** 2, 0) - 2 * flat @ self.codes
        chosen = tf.reshape(tf.matmul(tf.one_hot(tf.argmin(distances, 1), 64), self.codes, transpose_b=True), tf.shape(x))
        self.add_loss(tf.reduce_mean((tf.stop_gradient(chosen) - x) ** 2) + tf.reduce_mean((chosen - tf.stop_gradient(x)) ** 2))
        return x + tf.stop_gradient(chosen - x)


@program("tutorial", steps=STEPS, also=PEAKS)
def autoencoder_with_quantized_codes():
    entry, code = keras.Input((28, 28, 1)), keras.Input((7, 7, 16))
    encoder = keras.Model(entry, layers.Conv2D(16, 1)(layers.Conv2D(32, 3, 4, "same", activation="relu")(entry)), name="encoder")
    decoder = keras.Model(code, layers.Conv2DTranspose(1, 3, 4, "same")(code), name="decoder")
    model = keras.Model(entry, decoder(Quantizer()(encoder(entry))))
    model.compile("adam", "mse", jit_compile=False)
    x = images()
    model.fit(x, x, batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", steps=24, also=PEAKS)
def few_shots_by_reptile():
    """Inner steps from saved weights, which then move towards where these steps led."""
    model = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(16, 3, 2, activation="relu"), layers.BatchNormalization(), layers.Flatten(),
                              layers.Dense(5, activation="softmax")])
    optimizer = keras.optimizers.SGD(0.003)
    for _ in range(6):
        old = model.get_weights()
        for _ in range(4):
            x, y = images(BATCH), classes(BATCH, 5)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, model(x, training=True)))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_weights), model.trainable_weights))
        new = model.get_weights()
        model.set_weights([o + 0.2 * (n - o) for o, n in zip(old, new)])
    return of(model)


@program("tutorial", steps=12, also=PEAKS)
def style_of_one_picture_for_another():
    """The picture is what is trained; the network only measures it."""
    base = keras.Sequential([keras.Input((64, 64, 3)), layers.Conv2D(32, 3, activation="relu"), layers.Conv2D(32, 3, 2, activation="relu"),
                             layers.Conv2D(64, 3, activation="relu")], name="vgg")
    extract = keras.Model(base.inputs, {layer.name: layer.output for layer in base.layers})
    picture = tf.Variable(np.random.rand(1, 64, 64, 3).astype("float32"))
    style, optimizer = tf.constant(np.random.rand(1, 64, 64, 3).astype("float32")), keras.optimizers.SGD(1.0)

    @tf.function
    def gradients_of(picture):
        with tf.GradientTape() as tape:
            found = extract(tf.concat([picture, style], 0))
            loss = tf.add_n([tf.reduce_mean((values[0] - values[1]) ** 2) for values in found.values()])
        return tape.gradient(loss, picture)

    for _ in range(12):
        optimizer.apply_gradients([(gradients_of(picture), picture)])
    return of(base) + of(extract)


@program("tutorial", also=PEAKS)
def deep_dream():
    """Gradient ascent on a picture at three sizes, without an optimizer."""
    base = keras.Sequential([keras.Input((None, None, 3)), layers.Conv2D(16, 3, activation="relu"), layers.Conv2D(32, 3, activation="relu")])
    for size in (32, 48, 64):
        picture = tf.convert_to_tensor(np.random.rand(1, size, size, 3).astype("float32"))
        for _ in range(8):
            with tf.GradientTape() as tape:
                tape.watch(picture)
                loss = tf.reduce_mean(base(picture) ** 2)
            slope = tape.gradient(loss, picture)
            picture = picture + 0.01 * slope / tf.maximum(tf.reduce_mean(tf.abs(slope)), 1e-6)
    return of(base)


def to_pictures(name):
    return keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(16, 3, padding="same", activation="relu"),
                             layers.Conv2D(1, 3, padding="same")], name=name)


def to_verdict(name):
    return keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(16, 4, 2), layers.LeakyReLU(), layers.Conv2D(1, 4)], name=name)


@program("tutorial", steps=STEPS, also=PEAKS)
def cycles_between_two_domains():
    """Four networks with four optimizers, and one persistent tape."""
    class CycleGan(keras.Model):
        def __init__(self):
            super().__init__()
            self.forth, self.back, self.of_x, self.of_y = to_pictures("forth"), to_pictures("back"), to_verdict("of_x"), to_verdict("of_y")

        def compile(self):
            super().compile(jit_compile=False)
            self.optimizers_of = [(part, keras.optimizers.Adam(2e-4)) for part in (self.forth, self.back, self.of_x, self.of_y)]

        def train_step(self, data):
            x, y = data
            with tf.GradientTape(persistent=True) as tape:
                fake_y, fake_x = self.forth(x), self.back(y)
                cycle = tf.reduce_mean(tf.abs(self.back(fake_y) - x)) + tf.reduce_mean(tf.abs(self.forth(fake_x) - y))
                makers = [tf.reduce_mean((self.of_y(fake_y) - 1) ** 2) + cycle, tf.reduce_mean((self.of_x(fake_x) - 1) ** 2) + cycle]
                critics = [tf.reduce_mean((self.of_x(x) - 1) ** 2) + tf.reduce_mean(self.of_x(fake_x) ** 2),
                           tf.reduce_mean((self.of_y(y) - 1) ** 2) + tf.reduce_mean(self.of_y(fake_y) ** 2)]
            for loss, (part, optimizer) in zip(makers + critics, self.optimizers_of):
                optimizer.apply_gradients(zip(tape.gradient(loss, part.trainable_variables), part.trainable_variables))
            return {"cycle": cycle}

    model = CycleGan()
    model.compile()
    model.fit(images(), images(), batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def layers_that_train_themselves():
    """Forward-forward: each layer has an optimizer and a loss, inside one train_step."""
    class Local(layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense, self.optimizer = layers.Dense(128, activation="relu"), keras.optimizers.Adam(0.03)

        def call(self, x):
            return self.dense(x / (tf.norm(x, axis=1, keepdims=True) + 1e-4))

        def train(self, good, bad):
            with tf.GradientTape() as tape:
                first, second = tf.reduce_mean(self(good) ** 2, 1), tf.reduce_mean(self(bad) ** 2, 1)
                loss = tf.reduce_mean(tf.math.softplus(tf.concat([1.5 - first, second - 1.5], 0)))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.dense.trainable_weights), self.dense.trainable_weights))
            return tf.stop_gradient(self(good)), tf.stop_gradient(self(bad)), loss

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [Local(), Local()]
            for part, width in zip(self.parts, (784, 128)):
                part.dense.build((None, width))
                part.optimizer.build(part.dense.trainable_weights)

        def train_step(self, data):
            x, y = data
            good, bad, total = x, tf.roll(x, 1, 0), 0.0
            for part in self.parts:
                good, bad, loss = part.train(good, bad)
                total += loss
            return {"loss": total}

    model = Net()
    model.compile(jit_compile=False)
    model.fit(images().reshape(-1, 784), classes(), batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", steps=2 * STEPS, also=PEAKS)
def contrastive_pretraining_with_a_probe():
    """An encoder with a head, and a probe on top of the frozen encoder, both in one step; then the encoder is fine-tuned."""
    class Contrastive(keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(16, 3, 2, activation="relu"), layers.Flatten(), layers.Dense(32)],
                                            name="encoder")
            self.head = keras.Sequential([keras.Input((32,)), layers.Dense(32, activation="relu"), layers.Dense(16)], name="head")
            self.probe = keras.Sequential([keras.Input((32,)), layers.Dense(10)], name="probe")

        def compile(self):
            super().compile(jit_compile=False)
            self.of_encoder, self.of_probe = keras.optimizers.Adam(), keras.optimizers.Adam()

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                first, second = (tf.math.l2_normalize(self.head(self.encoder(x + tf.random.normal(tf.shape(x)))), 1) for _ in range(2))
                alike = tf.matmul(first, second, transpose_b=True) / 0.1
                loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(tf.range(tf.shape(x)[0]), alike, from_logits=True))
            weights = self.encoder.trainable_weights + self.head.trainable_weights
            self.of_encoder.apply_gradients(zip(tape.gradient(loss, weights), weights))
            with tf.GradientTape() as tape:
                probed = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, self.probe(self.encoder(x, training=False)), from_logits=True))
            self.of_probe.apply_gradients(zip(tape.gradient(probed, self.probe.trainable_weights), self.probe.trainable_weights))
            return {"loss": loss}

    model = Contrastive()
    model.compile()
    model.fit(images(), classes(), batch_size=BATCH, verbose=0)
    tuned = keras.Sequential([model.encoder, layers.Dense(10)], name="tuned")
    tuned.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    tuned.fit(images(), classes(), batch_size=BATCH, verbose=0)
    return of(model) + of(tuned)


@program("tutorial", steps=STEPS, also=PEAKS)
def translation_with_two_lstms():
    """The decoder starts with the encoder's state; for inference, both are cut out of the trained model."""
    source, target = keras.Input((None, 20)), keras.Input((None, 24))
    _, *state = layers.LSTM(64, return_state=True, name="encoder")(source)
    decoder, head = layers.LSTM(64, return_sequences=True, return_state=True, name="decoder"), layers.Dense(24, activation="softmax", name="head")
    y, _, _ = decoder(target, initial_state=state)
    model = keras.Model([source, target], head(y))
    model.compile("rmsprop", "categorical_crossentropy", jit_compile=False)
    x, y = np.random.rand(STEPS * BATCH, 10, 20).astype("float32"), np.random.rand(STEPS * BATCH, 12, 24).astype("float32")
    model.fit([x, y], y, batch_size=BATCH, verbose=0)
    encoder = keras.Model(source, state)
    starts = [keras.Input((64,)), keras.Input((64,))]
    found, *state = decoder(target, initial_state=starts)
    one_word = keras.Model([target, *starts], [head(found), *state])
    state = encoder.predict(x[:1], verbose=0)
    for _ in range(4):
        _, *state = one_word.predict([y[:1, :1], *state], verbose=0)
    return of(model) + of(encoder) + of(one_word)


@program("tutorial", steps=10, also=PEAKS)
def actor_and_critic_by_episodes():
    """One tape over a whole episode, of another length each time."""
    entry = keras.Input((4,))
    common = layers.Dense(128, activation="relu")(entry)
    model = keras.Model(entry, [layers.Dense(2, activation="softmax", name="actor")(common), layers.Dense(1, name="critic")(common)])
    optimizer, huber = keras.optimizers.Adam(0.01), keras.losses.Huber()
    for episode in range(10):
        chosen, values = [], []
        with tf.GradientTape() as tape:
            for _ in range(6 + episode % 4):
                odds, value = model(tf.constant(np.random.rand(1, 4).astype("float32")))
                chosen.append(tf.math.log(odds[0, int(np.random.choice(2))]))
                values.append(value[0, 0])
            losses = [-log * (1.0 - value) + huber([[1.0]], [[value]]) for log, value in zip(chosen, values)]
            loss = tf.add_n(losses)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return of(model)


@program("tutorial", steps=3 * (STEPS - 1), also=PEAKS)
def models_by_hyperparameters():
    """A new model for each width, and the session cleared in between."""
    for width in (32, 64, 48):
        keras.backend.clear_session()
        model = keras.Sequential([keras.Input((784,)), layers.Dense(width, activation="relu", name="hidden"), layers.Dense(10, name="head")], name="net")
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(images().reshape(-1, 784), classes(), batch_size=BATCH, validation_split=0.125, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def experts_chosen_by_a_router():
    """A switch transformer: each token goes to one of the experts."""
    class Switch(layers.Layer):
        def __init__(self):
            super().__init__(name="switch")
            self.router, self.experts = layers.Dense(4, name="router"), [layers.Dense(32, activation="relu", name=f"expert_{i}") for i in range(4)]

        def call(self, x):
            odds = tf.nn.softmax(self.router(x))
            best = tf.one_hot(tf.argmax(odds, -1), 4)
            self.add_loss(0.01 * tf.reduce_sum(tf.reduce_mean(best, [0, 1]) * tf.reduce_mean(odds, [0, 1])))
            return tf.add_n([expert(x) * (odds * best)[..., i:i + 1] for i, expert in enumerate(self.experts)])

    entry = keras.Input((20,), dtype="int32")
    x = layers.Embedding(500, 32)(entry)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x))
    x = layers.GlobalAveragePooling1D()(Switch()(x))
    model = keras.Model(entry, layers.Dense(2)(layers.Dropout(0.1)(x)))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(np.random.randint(0, 500, (STEPS * BATCH, 20)), classes(most=2), batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", also=PEAKS)
def where_a_network_looks():
    """Gradients of a class with respect to a layer's result (Grad-CAM) and along a path of pictures (integrated gradients): no training at all."""
    entry = keras.Input((28, 28, 1))
    x = layers.Conv2D(16, 3, activation="relu", name="last")(entry)
    model = keras.Model(entry, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    both = keras.Model(entry, [model.get_layer("last").output, model.output])
    for _ in range(6):
        with tf.GradientTape() as tape:
            seen, odds = both(tf.constant(images(1)))
            best = odds[:, 3]
        tape.gradient(best, seen)
        path = tf.constant(images(20))
        with tf.GradientTape() as tape:
            tape.watch(path)
            best = model(path)[:, 3]
        tape.gradient(best, path)
    return of(model) + of(both)


if __name__ == "__main__":
    run_all()
