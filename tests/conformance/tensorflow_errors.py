"""Mistakes in TensorFlow and Keras programs, each printed as Python, Keras and TensorFlow would show it."""
import inspect
import os
import traceback
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


class Broken(keras.layers.Layer):
    def call(self, x):
        return tf.matmul(x, tf.ones([7, 7]))


class Warns(keras.layers.Layer):
    def call(self, x):
        warnings.warn("seen from the caller", stacklevel=3)
        return x


class BrokenStep(keras.Model):
    def train_step(self, batch):
        raise ValueError("in train_step")


class BrokenCallback(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        raise RuntimeError("in a callback")


def network():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    return model


x, y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")


def wrong_shape():
    keras.layers.Dense(3)(tf.ones([2, 4]))
    network()(tf.ones([2, 5]))


def wrong_rank():
    keras.layers.Conv2D(3, 3)(tf.ones([2, 4]))


def layer_raises():
    Broken()(tf.ones([2, 4]))


def inner_layer_raises():
    keras.Sequential([keras.layers.Dense(4), Broken()])(tf.ones([2, 4]))


def layer_raises_in_graph():
    model = keras.Sequential([keras.layers.Dense(4), Broken()])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(x, y, verbose=0)


def no_loss():
    keras.Sequential([keras.layers.Dense(1)]).fit(x, y, verbose=0)


def fit_with_wrong_data():
    network().fit(np.ones((8, 5), "float32"), y, verbose=0)


def train_step_raises():
    model = BrokenStep()
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)


def callback_raises():
    network().fit(x, y, verbose=0, callbacks=[BrokenCallback()])


def evaluate_with_wrong_data():
    network().evaluate(np.ones((8, 9), "float32"), y, verbose=0)


def predict_with_wrong_data():
    network().predict(np.ones((8, 9), "float32"), verbose=0)


def batch_with_wrong_data():
    network().train_on_batch(np.ones((8, 9), "float32"), y)


def does_not_trace():
    tf.function(lambda a: tf.matmul(a, tf.ones([3, 3])))(tf.ones([2, 2]))


def fails_when_it_runs():
    @tf.function(jit_compile=False)
    def step(a):
        return tf.reshape(a, tf.cast([tf.reduce_sum(a), 5.0], tf.int32))
    step(tf.ones([2, 2]))


def assertion_in_graph():
    @tf.function
    def step(a):
        tf.debugging.assert_equal(a, a + 1.0, message="on purpose")
        return a
    step(tf.ones([2]))


def gradient_twice():
    variable = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        loss = variable * 2.0
    tape.gradient(loss, variable)
    tape.gradient(loss, variable)


def custom_gradient_raises():
    @tf.custom_gradient
    def breaks(a):
        def grad(upstream):
            raise ValueError("in a gradient")
        return a * 2.0, grad
    variable = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        loss = breaks(variable)
    tape.gradient(loss, variable)


def dataset_with_wrong_buffer():
    for _ in tf.data.Dataset.range(4).shuffle(-5).batch(2):
        pass


def map_raises():
    tf.data.Dataset.range(4).map(lambda number: number.missing)


def map_fails_when_it_runs():
    for _ in tf.data.Dataset.range(4).map(lambda number: tf.debugging.assert_less(number, tf.constant(2, tf.int64))).batch(2).prefetch(1):
        pass


def generator_raises():
    def numbers():
        yield 1
        raise KeyError("in a generator")
    for _ in tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int32)).batch(2):
        pass


def wrong_constant():
    tf.constant(np.ones((200, 200)), shape=[7, 7])


def optimizer_without_gradients():
    keras.optimizers.SGD().apply_gradients([(None, tf.Variable(1.0))])


def optimizer_with_other_variables():
    optimizer = keras.optimizers.Adam()
    optimizer.apply_gradients([(tf.ones([2]), tf.Variable([1.0, 1.0]))])
    optimizer.apply_gradients([(tf.ones([3]), tf.Variable([1.0, 1.0, 1.0]))])


def assign_wrong_shape():
    tf.Variable([1.0, 2.0]).assign([1.0, 2.0, 3.0])


def bad_variable():
    tf.Variable()


def bad_dataset():
    tf.data.Dataset.from_tensor_slices((tf.ones([2]), tf.ones([3])))


def weights_that_are_not_there():
    network().load_weights("none.weights.h5")


def model_that_cannot_be_saved():
    network().save("model.unknown")


def bad_argument_of_a_layer():
    keras.layers.Dense("many", colour="red")


def bad_argument_of_a_metric():
    keras.metrics.MeanSquaredError(colour="red")


def session_without_a_value():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.placeholder(tf.float32, [2], name="missing") + 1.0)


def session_fails_when_it_runs():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        given = tf.compat.v1.placeholder(tf.float32, [None], name="given")
        session.run(tf.reshape(given, [3]), {given: [1.0, 2.0]})


def session_reads_a_variable_too_early():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.get_variable("early", [2], use_resource=False))


def show(function):
    try:
        function()
        print(function.__name__, "did not fail")
    except Exception as error:  # noqa: BLE001
        print(f"--- {function.__name__}: {type(error).__name__}, cause {type(error.__cause__).__name__}, context {type(error.__context__).__name__}, "
              f"suppressed {error.__suppress_context__}")
        print(traceback.format_exc())


FAILURES = [value for name, value in list(globals().items()) if inspect.isfunction(value) and value.__module__ == "__main__"
            and name not in ("network", "show")]


def look_from_outside():
    """What a program can see of the functions that recording is interested in."""
    for function in (keras.Model.fit, keras.layers.Layer.__call__, keras.layers.Layer.__init__, keras.optimizers.Optimizer.apply, tf.GradientTape.gradient,
                     tf.Variable.assign, keras.metrics.Metric.__init__, tf.compat.v1.Session.run):
        print(function.__qualname__, function.__module__, inspect.signature(function), inspect.getsourcefile(function), inspect.isfunction(function),
              (function.__doc__ or "")[:40].strip(), inspect.ismethod(function.__get__(object())))


if __name__ == "__main__":
    for failure in FAILURES:
        if failure is not look_from_outside:
            show(failure)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        Warns()(tf.ones([1]))
    print([(warning.filename, warning.lineno, str(warning.message)) for warning in seen])
    look_from_outside()
    keras.config.disable_traceback_filtering()
    tf.debugging.disable_traceback_filtering()
    for failure in (layer_raises, inner_layer_raises, layer_raises_in_graph, callback_raises, gradient_twice, does_not_trace, assign_wrong_shape):
        show(failure)
    network().fit(x, y, verbose=0, callbacks=[BrokenCallback()])        # ends the program
