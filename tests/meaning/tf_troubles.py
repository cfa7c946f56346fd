"""TensorFlow and Keras programs with one trouble that is not a leak, and clean ones: graph, eager and XLA. The ops of functions run in one
order, so that peaks are the same in every run."""
# Long because it is a list of programs.
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from corpus import MIB, program, run_all  # noqa: E402
from tf_made_up import in_sequence, made_batches  # noqa: E402

keras, layers = tf.keras, tf.keras.layers
STEPS, BATCH = 16, 64


def data(steps=STEPS, batch=BATCH, dtype="float32"):
    return np.ones((steps * batch, 64), dtype), np.ones((steps * batch, 1), dtype)


def net(width=512, dtype="float32"):
    return keras.Sequential([keras.Input((64,), dtype=dtype), layers.Dense(width, activation="relu", dtype=dtype), layers.Dense(width, activation="relu", dtype=dtype),
                             layers.Dense(1, dtype=dtype)])


def fit(model=None, steps=STEPS, optimizer="sgd", batch=BATCH, **options):
    model = model or net()
    model.compile(optimizer, "mse", jit_compile=options.pop("jit", False), run_eagerly=options.pop("eager", False))
    x, y = data(steps, batch)
    model.fit(x, y, batch_size=batch, verbose=0, **options)
    return model


def trained(step, steps=STEPS):
    for i in range(steps):
        step(i)


def by_hand(optimizer, dtype="float32", width=512, steps=6):
    """Op by op and without a pipeline, so that the peak is the same in every run; all tensors have one size, so that the allocator adds nothing to
    them. The peak is in the backward pass: what optimizers need while they run differs from one to the other."""
    model = keras.Sequential([keras.Input((width,), dtype=dtype), *(layers.Dense(width, "gelu", use_bias=False, dtype=dtype) for _ in range(4))])
    x = tf.ones([width, width], dtype)
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        del tape, loss
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        del gradients


# Retracing, constants, float64, tapes, data.


@program("retracing", "retrace", "traced 10 times|traced 1[0-9] times")
def python_number_as_an_argument():
    model, optimizer = net(), keras.optimizers.SGD(0.01)

    @tf.function
    def step(x, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2) * rate
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    trained(lambda i: step(tf.ones([BATCH, 64]), float(i)), 12)


@program("retracing", "retrace", "created again")
def function_made_in_the_loop():
    weight = tf.Variable(tf.ones([64, 64]))

    def step(i):
        @tf.function
        def run(x):
            return tf.reduce_sum(x @ weight)
        run(tf.ones([BATCH, 64]))

    trained(step, 12)


@program("constants", "baked-constant", r"8\.0 MiB of constants", saving=8 * MIB, also=["peak-is-start"])
def array_inside_a_function():
    table, weight = np.random.rand(2048, 1024).astype("float32"), tf.Variable(tf.ones([1024, 16]))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.constant(table) @ weight)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))

    trained(lambda i: step())


# Initial values are drawn, scaled and shifted: 25.0 MiB by TensorFlow's own counter, which a step may or may not exceed.
@program("float64", "float64", "float32", also=["peak-is-start"])
def model_in_float64():
    keras.backend.set_floatx("float64")
    model = net(1024, "float64")
    model.compile("sgd", "mse", jit_compile=False)
    x, y = data(dtype="float64")
    model.fit(x, y, batch_size=BATCH, verbose=0)


def in_type(dtype):
    keras.backend.set_floatx(dtype)
    by_hand(keras.optimizers.SGD(1e-4), dtype)


@program("float64", "float64", "float32", fixed=lambda: in_type("float32"))
def loop_in_float64():
    in_type("float64")


def squared(dtype):
    weight = tf.Variable(np.ones((1024, 1024), dtype))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight @ weight)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))

    trained(lambda i: step())


@program("float64", "float64", "float32", fixed=lambda: squared("float32"))
def variable_from_numpy():
    squared("float64")


@program("tapes", "persistent-tape", "del tape")
def persistent_tape_alive_in_the_next_step():
    model, optimizer = net(2048), keras.optimizers.SGD(0.01)
    for _ in range(STEPS):
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean(model(tf.ones([BATCH, 64])) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))


@program("data", "dataset-on-device", r"16\.3 MiB", saving=65536 * 65 * 4, also=["peak-is-start"])
def dataset_made_of_a_tensor():
    source = tf.ones([65536, 64])
    model = net()
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(tf.data.Dataset.from_tensor_slices((source, tf.ones([65536, 1]))).batch(BATCH).take(STEPS), verbose=0)


@program("data", "cached-dataset", r"16\.3 MiB", saving=65536 * 65 * 4)
def dataset_cached():
    model = net()
    model.compile("sgd", "mse", jit_compile=False)
    rows = tf.data.Dataset.range(1024).map(lambda i: (tf.ones([64, 64]), tf.ones([64, 1]))).cache()
    model.fit(rows.take(-1), epochs=1, steps_per_epoch=1024, verbose=0)


@program("data")
def dataset_cached_but_never_read():
    tf.data.Dataset.range(1024).map(lambda i: (tf.ones([64, 64]), tf.ones([64, 1]))).cache()
    fit()


# Peaks in odd places.


def validated(batch):
    model = net()
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(made_batches(16, 16), verbose=0, validation_data=made_batches(16384 // batch, batch))


@program("evaluation", "peak-is-evaluation", "smaller batches", fixed=lambda: validated(64))
def validation_with_larger_batches():
    validated(16384)


@program("warm-up", "peak-is-start")
def large_array_before_training():
    large = tf.random.normal([4096, 2048])
    scaled = (large - tf.reduce_mean(large)) / tf.math.reduce_std(large)
    del large, scaled
    fit()


# Optimizers.


@program("optimizer")
def with_momentum():
    by_hand(keras.optimizers.SGD(1e-4, momentum=0.9))


@program("optimizer", "optimizer-state", r"2\.0 values per parameter", fixed=with_momentum)
def adam():
    by_hand(keras.optimizers.Adam(1e-4))


@program("optimizer", "optimizer-state", r"2\.0 values per parameter")
def adam_in_fit():
    fit(net(640), optimizer=keras.optimizers.Adam(1e-4), batch=1024, steps=8)


@program("optimizer")
def rmsprop():
    fit(net(640), optimizer=keras.optimizers.RMSprop(1e-4), batch=1024, steps=8)


@program("optimizer", "optimizer-state", r"2\.0 values per parameter", fixed=with_momentum)
def adadelta():
    by_hand(keras.optimizers.Adadelta(1e-4))


# Clean.


@program("clean", steps=STEPS)
def plain_fit():
    fit()


@program("clean", steps=STEPS)
def plain_fit_eager():
    fit(eager=True)


@program("clean", steps=STEPS)
def plain_fit_with_xla():
    fit(jit=True)


@program("clean", steps=2 * STEPS)
def two_epochs_with_validation():
    x, y = data(2)
    fit(epochs=2, validation_data=(x, y))


@program("clean", steps=STEPS)
def own_train_step():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = net()

        def call(self, x):
            return self.inner(x)

        def train_step(self, pair):
            x, y = pair
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {"loss": loss}

    fit(Model())


@program("clean", steps=STEPS)
def written_by_hand():
    weight = tf.Variable(tf.ones([512, 512]))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight @ weight)
        weight.assign_sub(0.01 * tape.gradient(loss, weight))

    trained(lambda i: step())


@program("clean", steps=STEPS)
def written_by_hand_eager():
    weights = [tf.Variable(tf.ones([512, 512])), tf.Variable(tf.ones([512, 1]))]

    def step(i):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights[0] @ weights[1])
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.01 * gradient)

    trained(step)


@program("clean", steps=STEPS)
def gan():
    maker, critic = net(), net()
    of_maker, of_critic = keras.optimizers.SGD(0.01), keras.optimizers.SGD(0.01)

    @tf.function
    def step(noise, real):
        with tf.GradientTape() as first, tf.GradientTape() as second:
            fake = tf.tile(maker(noise), [1, 64])
            good, bad = tf.reduce_mean(critic(real)), tf.reduce_mean(critic(fake))
            of_critic_loss, of_maker_loss = bad - good, -bad
        of_critic.apply_gradients(zip(first.gradient(of_critic_loss, critic.trainable_variables), critic.trainable_variables))
        of_maker.apply_gradients(zip(second.gradient(of_maker_loss, maker.trainable_variables), maker.trainable_variables))

    trained(lambda i: step(tf.ones([BATCH, 64]), tf.ones([BATCH, 64])))


@program("clean", steps=STEPS)
def mixed_precision():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = keras.Sequential([keras.Input((64,)), layers.Dense(512, activation="relu"), layers.Dense(1)])
    fit(model)


@program("clean", steps=STEPS)
def gradients_accumulated():
    fit(optimizer=keras.optimizers.SGD(0.01, gradient_accumulation_steps=4))


@program("clean", steps=STEPS)
def lstm():
    model = keras.Sequential([keras.Input((16, 4)), layers.LSTM(64), layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    x, y = data()
    model.fit(x.reshape(-1, 16, 4), y, batch_size=BATCH, verbose=0)


@program("clean", also=["peak-is-start"])
def prediction_only():
    model = net()
    model.predict(data(32)[0], batch_size=BATCH, verbose=0)


@program("clean", also=["peak-is-start"])
def evaluation_only():
    model = net()
    model.compile(loss="mse", jit_compile=False)
    model.evaluate(*data(32), batch_size=BATCH, verbose=0)


@program("clean", steps=2 * STEPS)
def two_models():
    fit(net(256))
    fit(net(128))


# Out of memory, with a limit on the pool.


def limited(mib):
    return {"TF_CPU_BFC_MEM_LIMIT_IN_MB": str(mib)}


@program("out of memory", "oom", "batch of at most [0-9]+ % of this one|batch of at most .* instead of 512", environment=limited(96))
def batch_too_large():
    model = keras.Sequential([keras.Input((32, 32, 3)), layers.Conv2D(64, 3, padding="same", activation="relu"), layers.BatchNormalization(),
                              layers.GlobalAveragePooling2D(), layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    for batch in (16, 16, 16, 512):
        model.train_on_batch(np.ones((batch, 32, 32, 3), "float32"), np.ones((batch, 1), "float32"))


def attention(width=64):
    inputs = keras.Input((32,), dtype="int32")
    x = layers.Embedding(500, width)(inputs)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, width // 4)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x)))
    return keras.Model(inputs, layers.Dense(500)(x))


def by_tape(batches):
    model, optimizer = attention(), keras.optimizers.Adam()
    for batch in batches:
        text = tf.zeros([batch, 32], "int32")
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(text, model(text, training=True), from_logits=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))


@program("out of memory", "oom", "step 1: .*batch of at most [0-9]+ instead of 512", environment=limited(48), steps=1)
def first_step_op_by_op():
    by_tape([512])


@program("out of memory", "oom", "step 4: .*batch of at most (3[78]) instead of 512", environment=limited(48), steps=4)
def fourth_step_op_by_op():
    by_tape([16, 16, 16, 512])


@program("out of memory", "oom", "(?i)leak", also=("leak", "held-tensors"), environment=limited(64))
def leak_until_it_is_full():
    kept = []
    model = net()
    model.compile("sgd", "mse", jit_compile=False)
    x, y = data(64)
    model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=lambda b, logs: kept.append(tf.ones([2 * MIB // 4]) * 2))])


@program("out of memory", "oom", "(?i)fragment", also=("fragmentation",), environment=limited(64))
def every_second_block_stays():
    blocks = [tf.zeros([MIB // 2]) for _ in range(28)]
    kept = blocks[::2]
    del blocks
    tf.zeros([4 * MIB])
    del kept


@program("out of memory", "oom", "limit", environment=limited(48))
def model_larger_than_the_limit():
    model = keras.Sequential([keras.Input((2048,)), layers.Dense(4096), layers.Dense(4096)])
    model(tf.ones([1, 2048]))


@program("out of memory", "oom", "limit", environment=limited(64))
def slots_of_the_optimizer():
    model = keras.Sequential([keras.Input((1024,)), layers.Dense(4096), layers.Dense(1024)])
    model.compile("adam", "mse", jit_compile=False)
    model.fit(np.ones((16, 1024), "float32"), np.ones((16, 1024), "float32"), batch_size=4, verbose=0)


@program("out of memory", "oom", "^(?!.*instead of 64).*limit", also=["peak-is-evaluation"], environment=limited(64))
def evaluation_with_a_large_batch():
    model = fit()
    model(tf.ones([65536, 64]))


@program("out of memory", "oom", "limit", environment=limited(64))
def table_of_one_request():
    weight = tf.Variable(tf.ones([1024, 1024]))
    trained(lambda i: tf.reduce_sum(weight @ weight), 4)
    tf.ones([64 * MIB // 4])


if __name__ == "__main__":
    run_all(first=in_sequence)
