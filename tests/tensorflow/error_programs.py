"""Errors as users of TensorFlow and Keras meet them, one after the other. Prints what Python prints for each."""
import os
import sys
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

X, Y = np.ones((8, 3), "float32"), np.ones((8, 2), "float32")
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def compiled(**options):
    model = keras.Sequential([keras.layers.Dense(4, name="a"), keras.layers.Dense(2, name="b")], name="net")
    model.compile("sgd", "mse", **options)
    return model


class Failing(keras.layers.Layer):
    def call(self, x):
        raise RuntimeError("in call")


class Raising(keras.callbacks.Callback):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def on_train_batch_end(self, batch, logs=None):
        raise self.error


class OwnStep(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(2)

    def call(self, x):
        return self.inner(x)

    def train_step(self, data):
        return {"loss": data[0].nothing}


def batches():
    yield X, Y
    raise ValueError("in a generator")


@program
def wrong_shape():
    model = compiled()
    model.build((None, 3))
    model.fit(X[:, :2], Y, verbose=0)


@program
def wrong_shape_of_the_loss():
    compiled().fit(X, np.ones((8, 5), "float32"), verbose=0)


@program
def wrong_dtype():
    tf.matmul(tf.ones([2, 2]), tf.ones([2, 2], tf.int32))


@program
def layer_in_eager_mode():
    keras.Sequential([keras.layers.Dense(3), Failing(name="failing")])(X)


@program
def layer_in_fit():
    model = keras.Sequential([keras.layers.Dense(3, name="d"), Failing(name="failing")], name="m")
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)


@program
def symbolic_call():
    keras.layers.Conv2D(3, 3, name="conv")(keras.Input((3,), name="in"))


@program
def callback():
    compiled().fit(X, Y, verbose=0, callbacks=[Raising(ValueError("in a callback"))])


@program
def interrupted():
    compiled().fit(X, Y, verbose=0, callbacks=[Raising(KeyboardInterrupt())])


@program
def generator():
    compiled().fit(batches(), steps_per_epoch=3, verbose=0)


@program
def generator_of_a_dataset():
    for _ in tf.data.Dataset.from_generator(batches, output_signature=(tf.TensorSpec((8, 3)), tf.TensorSpec((8, 2)))):
        pass


@program
def tracing_map():
    tf.data.Dataset.range(3).map(lambda x: tf.ensure_shape(x, [4]))


@program
def running_map():
    list(tf.data.Dataset.range(3).map(lambda x: tf.debugging.assert_less(x, tf.constant(1, tf.int64), "too large") or x))


@program
def own_train_step():
    model = OwnStep()
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)


@program
def own_train_step_in_eager_mode():
    model = OwnStep()
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(X, Y, verbose=0)


@program
def out_of_memory():
    tf.zeros([1 << 44])


@tf.function
def divided(x, y):
    return tf.raw_ops.FloorDiv(x=x, y=y)


@program
def running_a_function():
    divided(tf.constant(1), tf.constant(0))


@tf.function
def reshaped(x):
    return tf.reshape(x, [7])


@program
def tracing_a_function():
    reshaped(tf.ones([3]))


@tf.function
def undefined(x):
    if x > 0:
        y = 1
    return y


@program
def autograph():
    undefined(tf.constant(1))


@program
def tape_used_twice():
    variable = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = variable * variable
    tape.gradient(y, variable)
    tape.gradient(y, variable)


@program
def gradient_function():
    @tf.custom_gradient
    def identity(x):
        def gradient(_):
            raise RuntimeError("in a gradient")
        return x, gradient

    variable = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = identity(variable)
    tape.gradient(y, variable)


@program
def assignment():
    tf.Variable([1.0]).assign([1.0, 2.0])


@program
def unfed_placeholder():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.placeholder(tf.float32, [2], name="p") + 1)


@program
def missing_file():
    compiled().load_weights("nothing.weights.h5")


@program
def constant():
    tf.constant(np.ones(4), shape=[7])


if __name__ == "__main__":
    if "unfiltered" in sys.argv:
        tf.debugging.disable_traceback_filtering()
        keras.config.disable_traceback_filtering()
    for one in PROGRAMS:
        print("=====", one.__name__)
        try:
            one()
            print("no error")
        except BaseException:  # noqa: BLE001 (an interrupt too)
            traceback.print_exc(file=sys.stdout)
