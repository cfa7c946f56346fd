"""TensorFlow and Keras programs that keep something from step to step, and programs that only look like it."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import collections  # noqa: E402
import gc  # noqa: E402

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from corpus import program, run_all  # noqa: E402

keras, layers = tf.keras, tf.keras.layers
STEPS, BATCH = 24, 64
LEAK = ("leak", "held-tensors")


def data(steps=STEPS, batch=BATCH):
    return np.ones((steps * batch, 64), "float32"), np.ones((steps * batch, 1), "float32")


def net(width=256):
    return keras.Sequential([keras.Input((64,)), layers.Dense(width, activation="relu"), layers.Dense(1)])


def fit(callback=lambda batch: None, model=None, steps=STEPS, **options):
    model = model or net()
    model.compile("sgd", "mse", jit_compile=options.pop("jit", False), run_eagerly=options.pop("eager", False))
    x, y = data(steps)
    return model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=lambda b, logs: callback(b))], **options)


def custom(keep, function=True, steps=STEPS):
    """A loop of one's own; `keep` gets the outputs and the loss of each step."""
    model, optimizer = net(), keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)

    def step(x, y):
        with tf.GradientTape() as tape:
            output = model(x, training=True)
            loss = tf.reduce_mean((output - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return output, loss, gradients

    step = tf.function(step) if function else step
    x, y = tf.ones([BATCH, 64]), tf.ones([BATCH, 1])
    for i in range(steps):
        keep(i, *step(x, y))


def block(i=0):
    return tf.fill([256, 256], float(i))


@program("leak", LEAK, fixed=lambda: fit())
def callback_keeps_tensors():
    kept = []
    fit(lambda batch: kept.append(block(batch)))


@program("leak", LEAK)
def callback_keeps_tensors_eager():
    kept = []
    fit(lambda batch: kept.append(block(batch)), eager=True)


@program("leak", LEAK)
def callback_keeps_tensors_with_xla():
    kept = []
    fit(lambda batch: kept.append(block(batch)), jit=True)


@program("leak", LEAK)
def gradients_of_every_step():
    history = []
    custom(lambda i, output, loss, gradients: history.append(gradients))


@program("leak", LEAK)
def gradients_of_every_eager_step():
    history = []
    custom(lambda i, output, loss, gradients: history.append(gradients), function=False)


@program("leak", LEAK, fixed=lambda: custom(lambda *_: None))
def variable_made_in_every_step():
    made = []
    custom(lambda i, *_: made.append(tf.Variable(block(i))))


@program("leak", LEAK, also=["persistent-tape"])
def tapes_kept():
    """A tape keeps the activations of its step."""
    model, tapes = net(4096), []
    optimizer = keras.optimizers.SGD(0.01)
    for _ in range(STEPS):
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean(model(tf.ones([BATCH, 64])) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        tapes.append(tape)


@program("leak", LEAK, fixed=lambda: custom(lambda *_: None))
def dictionary_of_outputs():
    by_step = {}

    def keep(i, *_):
        by_step[i] = block(i)

    custom(keep)


@program("leak", LEAK)
def models_kept():
    """A new model for each fold, all of them kept; its weights are made between the steps of another loop."""
    kept = []
    custom(lambda i, *_: kept.append(net(1024)), steps=16)


@program("leak", LEAK)
def concatenated():
    grown = tf.zeros([1, 4096])

    def keep(i, *_):
        nonlocal grown
        grown = tf.concat([grown, tf.ones([16, 4096])], 0)

    custom(keep)


@program("leak", LEAK)
def predictions_collected():
    model, outputs = net(), []
    model.compile("sgd", "mse", jit_compile=False)
    x, y = data(1)
    for _ in range(STEPS):
        model.train_on_batch(x, y)
        outputs.append(model(tf.ones([4096, 64])) + tf.ones([4096, 64]))


# Look-alikes.


@program("clean")
def window_of_five():
    window = collections.deque(maxlen=5)
    fit(lambda batch: window.append(block(batch)))


@program("clean")
def numbers_kept():
    losses = []
    custom(lambda i, output, loss, gradients: losses.append(float(loss)))


@program("clean")
def cache_that_is_full_soon():
    cache = {}
    custom(lambda i, *_: cache.setdefault(i % 4, block(i)), steps=30)


@program("clean")
def unfrozen_after_a_while():
    """Keras: slots are made anew when the model is compiled again with more layers to train."""
    body = keras.Sequential([layers.Dense(1024, activation="relu"), layers.Dense(1024, activation="relu")])
    body.trainable = False
    model = keras.Sequential([keras.Input((64,)), body, layers.Dense(1)])
    x, y = data(12)
    for trainable in (False, True):
        body.trainable = trainable
        model.compile(keras.optimizers.Adam(1e-4), "mse", jit_compile=False)
        model.fit(x, y, batch_size=BATCH, verbose=0)


@program("clean")
def next_and_larger_model():
    models = []
    for width in (256, 4096):
        models.append(net(width))
        fit(model=models[-1], steps=12)


@program("clean")
def cycles_that_wait_for_the_collector():
    class Node:
        pass

    def tangle(i, *_):
        node = Node()
        node.self, node.tensor = node, block(i)
        if i % 6 == 5:
            gc.collect()

    gc.disable()
    custom(tangle, steps=36)


@program("clean")
def batches_of_changing_size():
    model, optimizer = net(), keras.optimizers.SGD(0.01)

    @tf.function(input_signature=[tf.TensorSpec([None, 64])])
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    for i in range(30):
        step(tf.ones([64 + (i * 37) % 200, 64]))


@program("clean")
def weights_saved_every_epoch():
    model = net(1024)
    model.compile("sgd", "mse", jit_compile=False)
    x, y = data(6)
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        model.fit(x, y, batch_size=BATCH, epochs=4, verbose=0, callbacks=[keras.callbacks.ModelCheckpoint(folder + "/w.weights.h5", save_weights_only=True)])


@program("clean")
def moving_average_of_weights():
    model = net(1024)
    model.compile(keras.optimizers.SGD(0.01, use_ema=True, ema_overwrite_frequency=8), "mse", jit_compile=False)
    x, y = data()
    model.fit(x, y, batch_size=BATCH, verbose=0)


if __name__ == "__main__":
    run_all()
