"""Ways to train as the tutorials of Keras show them, with data made up and few steps: no trouble in any, and the layers of `model.summary()`."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from corpus import program, run_all  # noqa: E402
from tf_made_up import PEAKS, STEPS, classes, images, of  # noqa: E402

keras, layers = tf.keras, tf.keras.layers
BATCH = 16


@program("tutorial", steps=STEPS, also=PEAKS)
def metric_learning():
    """Anchors and positives in one batch; the loss is the similarity of all pairs."""
    class Embedding(keras.Model):
        def train_step(self, data):
            anchors, positives = data[0], data[1]
            with tf.GradientTape() as tape:
                similar = tf.einsum("ae,pe->ap", self(anchors, training=True), self(positives, training=True))
                loss = self.compute_loss(y=tf.range(tf.shape(similar)[0]), y_pred=similar / 0.2)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {"loss": loss}

    entry = keras.Input((32, 32, 3))
    x = entry
    for width in (16, 32):
        x = layers.Conv2D(width, 3, 2, activation="relu")(x)
    model = Embedding(entry, layers.UnitNormalization()(layers.Dense(8)(layers.GlobalAveragePooling2D()(x))))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    model.fit(images(size=32, channels=3), images(size=32, channels=3), batch_size=BATCH, verbose=0)
    return of(model)


class CtcLayer(layers.Layer):
    def call(self, labels, logits):
        rows, length, most = tf.shape(labels)[0], tf.shape(logits)[1], tf.shape(labels)[1]
        self.add_loss(tf.reduce_mean(tf.nn.ctc_loss(labels, logits, tf.fill([rows], most), tf.fill([rows], length), logits_time_major=False, blank_index=-1)))
        return logits


@program("tutorial", steps=STEPS, also=PEAKS)
def captcha_with_ctc():
    """The loss is added by a layer that takes the labels as an input."""
    pictures, labels = keras.Input((64, 16, 1), name="image"), keras.Input((4,), dtype="int32", name="label")
    x = layers.MaxPooling2D(2)(layers.Conv2D(16, 3, activation="relu", padding="same")(pictures))
    x = layers.Dense(32, activation="relu")(layers.Reshape((32, 128))(x))
    x = layers.Bidirectional(layers.LSTM(16, return_sequences=True))(x)
    model = keras.Model([pictures, labels], CtcLayer(name="ctc_loss")(labels, layers.Dense(12)(x)))
    model.compile(keras.optimizers.Adam(), jit_compile=False)
    model.fit({"image": np.random.rand(STEPS * 8, 64, 16, 1).astype("float32"), "label": np.random.randint(0, 10, (STEPS * 8, 4))}, batch_size=8, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def gan_with_gradient_penalty():
    """The critic takes several updates for each of the generator, and its gradient is differentiated again."""
    class Wgan(keras.Model):
        def __init__(self, critic, maker):
            super().__init__()
            self.critic, self.maker = critic, maker

        def compile(self):
            super().compile(jit_compile=False)
            self.of_critic, self.of_maker = keras.optimizers.Adam(2e-4), keras.optimizers.Adam(2e-4)

        def penalty(self, real, fake):
            mixed = real + tf.random.uniform([tf.shape(real)[0], 1, 1, 1]) * (fake - real)
            with tf.GradientTape() as tape:
                tape.watch(mixed)
                judged = self.critic(mixed, training=True)
            slope = tape.gradient(judged, mixed)
            return tf.reduce_mean((tf.sqrt(tf.reduce_sum(tf.square(slope), [1, 2, 3])) - 1.0) ** 2)

        def train_step(self, real):
            for _ in range(3):
                with tf.GradientTape() as tape:
                    fake = self.maker(tf.random.normal([BATCH, 32]), training=True)
                    cost = tf.reduce_mean(self.critic(fake)) - tf.reduce_mean(self.critic(real)) + 10.0 * self.penalty(real, fake)
                self.of_critic.apply_gradients(zip(tape.gradient(cost, self.critic.trainable_variables), self.critic.trainable_variables))
            with tf.GradientTape() as tape:
                loss = -tf.reduce_mean(self.critic(self.maker(tf.random.normal([BATCH, 32]), training=True)))
            self.of_maker.apply_gradients(zip(tape.gradient(loss, self.maker.trainable_variables), self.maker.trainable_variables))
            return {"d_loss": cost, "g_loss": loss}

    critic = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(16, 5, 2, "same"), layers.LeakyReLU(0.2), layers.Flatten(), layers.Dense(1)], name="critic")
    maker = keras.Sequential([keras.Input((32,)), layers.Dense(14 * 14 * 8), layers.Reshape((14, 14, 8)), layers.UpSampling2D(2),
                              layers.Conv2D(1, 3, padding="same", activation="tanh")], name="maker")
    model = Wgan(critic, maker)
    model.compile()
    model.fit(images(), batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def search_with_two_encoders():
    """Captions and pictures have an encoder each, and one loss."""
    class Both(keras.Model):
        def __init__(self, pictures, captions):
            super().__init__()
            self.pictures, self.captions = pictures, captions

        def call(self, features, training=False):
            return self.pictures(features[0], training=training), self.captions(features[1], training=training)

        def train_step(self, data):
            features = data[0]
            with tf.GradientTape() as tape:
                seen, said = self(features, training=True)
                logits = tf.matmul(said, seen, transpose_b=True) / 0.05
                loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(tf.range(BATCH), logits, from_logits=True))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {"loss": loss}

    seen, said = keras.Input((32, 32, 3)), keras.Input((16,), dtype="int32")
    pictures = keras.Model(seen, layers.Dense(32)(layers.GlobalAveragePooling2D()(layers.Conv2D(16, 3, activation="gelu")(seen))), name="pictures")
    captions = keras.Model(said, layers.Dense(32)(layers.GlobalAveragePooling1D()(layers.Embedding(500, 32)(said))), name="captions")
    model = Both(pictures, captions)
    model.compile(keras.optimizers.AdamW(1e-3), jit_compile=False)
    model.fit((images(size=32, channels=3), np.random.randint(0, 500, (STEPS * BATCH, 16))), np.zeros(STEPS * BATCH), batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", steps=2 * STEPS, also=PEAKS)
def series_with_a_stateful_rnn():
    """The state is kept from batch to batch and reset after each epoch."""
    model = keras.Sequential([keras.Input((12, 4), batch_size=BATCH), layers.GRU(32, stateful=True), layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False)
    for _ in range(2):
        model.fit(np.random.rand(STEPS * BATCH, 12, 4), np.random.rand(STEPS * BATCH, 1), batch_size=BATCH, epochs=1, shuffle=False, verbose=0)
        model.layers[0].reset_states()
    return of(model)


@program("tutorial", steps=24, also=PEAKS)
def q_learning_with_a_replay_buffer():
    """A memory with a limit, a target network that is copied from time to time, steps outside any fit."""
    def network():
        return keras.Sequential([keras.Input((8,)), layers.Dense(64, activation="relu"), layers.Dense(64, activation="relu"), layers.Dense(4)])

    model, target, memory = network(), network(), []
    optimizer, loss_of = keras.optimizers.Adam(2.5e-4, clipnorm=1.0), keras.losses.Huber()
    for frame in range(48):
        state = np.random.rand(8).astype("float32")
        values = model(tf.expand_dims(tf.convert_to_tensor(state), 0), training=False)
        memory = (memory + [(state, int(tf.argmax(values[0])), 1.0)])[-32:]
        if frame % 2 == 1:
            rows = [memory[i] for i in np.random.choice(len(memory), 16)]
            states, actions = np.stack([row[0] for row in rows]), [row[1] for row in rows]
            wanted = np.ones(16, "float32") + 0.99 * tf.reduce_max(target(states), axis=1)
            with tf.GradientTape() as tape:
                loss = loss_of(wanted, tf.reduce_sum(model(states) * tf.one_hot(actions, 4), axis=1))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        if frame % 16 == 15:
            target.set_weights(model.get_weights())


@program("tutorial", steps=STEPS, also=PEAKS)
def diffusion_with_averaged_weights():
    """Noise and its time are made in each step; a second network follows the weights of the first."""
    def network(name):
        noisy, time = keras.Input((16, 16, 1)), keras.Input((1,))
        x = layers.Conv2D(16, 3, padding="same", activation="swish")(noisy)
        x = layers.Add()([x, layers.Reshape((1, 1, 16))(layers.Dense(16)(time))])
        return keras.Model([noisy, time], layers.Conv2D(1, 3, padding="same", kernel_initializer="zeros")(x), name=name)

    class Diffusion(keras.Model):
        def __init__(self):
            super().__init__()
            self.network, self.average = network("network"), network("average")
            self.average.set_weights(self.network.get_weights())

        def train_step(self, pictures):
            time = tf.random.uniform([BATCH, 1])
            noise = tf.random.normal(tf.shape(pictures))
            strength = tf.reshape(time, [BATCH, 1, 1, 1])
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.abs(noise - self.network([(1 - strength) * pictures + strength * noise, time], training=True)))
            gradients = tape.gradient(loss, self.network.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, self.network.trainable_weights))
            for weight, average in zip(self.network.weights, self.average.weights):
                average.assign(0.999 * average + 0.001 * weight)
            return {"loss": loss}

    model = Diffusion()
    model.compile(keras.optimizers.AdamW(1e-3), jit_compile=False)
    model.fit(images(size=16), batch_size=BATCH, verbose=0)
    return of(model)


class Lora(layers.Layer):
    """The frozen layer's result, and a product of two thin matrices that are trained."""
    def __init__(self, inner, rank=4):
        super().__init__(name=inner.name + "_lora")
        self.inner = inner
        inner.trainable = False
        self.down, self.up = layers.Dense(rank, use_bias=False), layers.Dense(inner.units, use_bias=False, kernel_initializer="zeros")

    def call(self, x):
        return self.inner(x) + self.up(self.down(x))


@program("tutorial", steps=STEPS, also=PEAKS)
def fine_tuning_with_lora():
    entry = keras.Input((16,), dtype="int32")
    words = layers.Embedding(500, 64)
    words.trainable = False
    x = Lora(layers.Dense(64, activation="relu", name="feed"))(words(entry))
    model = keras.Model(entry, Lora(layers.Dense(500, name="head"))(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    model.fit(np.random.randint(0, 500, (STEPS * BATCH, 16)), np.random.randint(0, 500, (STEPS * BATCH, 16)), batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def mixed_precision_with_a_scaled_loss():
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = keras.Sequential([keras.Input((256,)), layers.Dense(512, activation="relu"), layers.Dense(512, activation="relu"), layers.Dense(10, dtype="float32")])
    model.compile(keras.optimizers.RMSprop(), keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    assert type(model.optimizer).__name__ == "LossScaleOptimizer"
    model.fit(np.random.rand(STEPS * BATCH, 256).astype("float32"), classes(), batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def mirrored_on_one_device():
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dense(10)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    model.fit(images(), classes(), batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def citations_with_a_graph_network():
    """The whole graph is a constant of the model; a batch is a list of nodes."""
    class GraphLayer(layers.Layer):
        def __init__(self, width):
            super().__init__()
            self.prepare, self.update = layers.Dense(width, activation="gelu"), layers.Dense(width, activation="gelu")

        def call(self, nodes, edges):
            messages = tf.math.unsorted_segment_mean(tf.gather(self.prepare(nodes), edges[1]), edges[0], nodes.shape[0])
            return self.update(tf.concat([nodes, messages], axis=1))

    class Classifier(keras.Model):
        def __init__(self):
            super().__init__()
            self.nodes, self.edges = tf.random.normal([300, 64]), tf.random.uniform([2, 1200], 0, 300, tf.int32)
            self.graph1, self.graph2, self.logits = GraphLayer(32), GraphLayer(32), layers.Dense(7)

        def call(self, chosen):
            x = self.graph2(self.graph1(self.nodes, self.edges), self.edges)
            return self.logits(tf.gather(x, chosen))

    model = Classifier()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    model.fit(np.random.randint(0, 300, (STEPS * BATCH,)), classes(most=7), batch_size=BATCH, verbose=0)
    return of(model)


@program("tutorial", steps=STEPS)
def heat_equation_by_nested_tapes():
    """What the inner tapes compute is a part of the outer one's forward pass; each tape is gone when the next step begins."""
    model = keras.Sequential([keras.Input((2,)), layers.Dense(256, activation="tanh"), layers.Dense(256, activation="tanh"), layers.Dense(1, use_bias=False)])
    optimizer = keras.optimizers.Adam()
    for _ in range(STEPS):
        x, t = tf.random.uniform([1024, 1]), tf.random.uniform([1024, 1])
        with tf.GradientTape() as tape:
            with tf.GradientTape(persistent=True) as outer:
                outer.watch([x, t])
                with tf.GradientTape(persistent=True) as inner:
                    inner.watch([x, t])
                    heat = model(tf.concat([x, t], 1))
                slope, change = inner.gradient(heat, x), inner.gradient(heat, t)
            loss = tf.reduce_mean(tf.square(change - 0.01 * outer.gradient(slope, x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        del inner, outer
    return of(model)


@program("tutorial", steps=3)
def epochs_inside_a_function():
    """TensorFlow turns a loop over a dataset inside a function into reduce(): the function is no part of the input pipeline."""
    model, optimizer = keras.Sequential([keras.Input((64,)), layers.Dense(256, activation="relu"), layers.Dense(10)]), keras.optimizers.Adam()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def epoch(data):
        for x, y in data:
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    data = tf.data.Dataset.from_tensor_slices((np.random.rand(256, 64).astype("float32"), classes(256))).shuffle(256).batch(16)
    for _ in range(3):
        epoch(data)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def gan_by_single_batches():
    """The generator makes pictures by itself before the model that contains it is trained."""
    discriminator = keras.Sequential([keras.Input((16, 16, 1)), layers.Conv2D(8, 3, 2, "same"), layers.Flatten(), layers.Dense(1)], name="discriminator")
    generator = keras.Sequential([keras.Input((32,)), layers.Dense(256), layers.Reshape((16, 16, 1))], name="generator")
    noise = keras.Input((32,))
    both = keras.Model(noise, discriminator(generator(noise)))
    for model in (discriminator, both):
        model.compile("adam", "mse", jit_compile=False)
    for _ in range(STEPS):
        fake = generator.predict(np.random.rand(16, 32), verbose=0)
        discriminator.train_on_batch(np.concatenate([images(16, 16), fake]), np.concatenate([np.ones((16, 1)), np.zeros((16, 1))]))
        both.train_on_batch(np.random.rand(16, 32), np.ones((16, 1)))
    return of(both)


@program("clean", steps=3 * STEPS)
def losses_kept_as_tensors():
    """One number per step is no trouble."""
    model, optimizer, losses = keras.Sequential([keras.Input((64,)), layers.Dense(512), layers.Dense(1)]), keras.optimizers.SGD(0.01), []
    for _ in range(3 * STEPS):
        with tf.GradientTape() as tape:
            losses.append(tf.reduce_mean(tf.square(model(tf.ones([256, 64])))))
        optimizer.apply(tape.gradient(losses[-1], model.trainable_variables), model.trainable_variables)
    return of(model)


@program("tutorial", steps=STEPS, also=PEAKS)
def predictions_of_a_tensor():
    """The dataset that predict() makes of it is gone when it returns."""
    model = keras.Sequential([keras.Input((64,)), layers.Dense(256, activation="relu"), layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False)
    model.fit(np.random.rand(STEPS * 16, 64), np.random.rand(STEPS * 16, 1), batch_size=16, verbose=0)
    model.predict(tf.ones([32768, 64]), batch_size=1024, verbose=0)
    return of(model)


if __name__ == "__main__":
    run_all()
