"""TensorFlow programs that run op by op."""
import collections

import numpy as np
from counted import program
from tensorflow_base import ROWS, WIDTH, arrays, count, keras, network, tensors, tf, train


@program
def eager_loop():
    model, optimizer, (x, y) = network(), keras.optimizers.Adam(), tensors()
    for _ in range(6):
        train(model, x, y, optimizer)
        count()


@program
def deque_of_activations():
    """Keeps the last 12: as many as are looked at when containers grow."""
    model, optimizer, (x, y) = network(), keras.optimizers.SGD(), tensors()
    last = collections.deque(maxlen=12)
    for _ in range(24):
        train(model, x, y, optimizer)
        last.append(model.layers[0](x))
        count()


@program
def list_that_grows():
    model, optimizer, (x, y) = network(), keras.optimizers.SGD(), tensors()
    losses = []
    for _ in range(20):
        losses.append((train(model, x, y, optimizer), model.layers[0](x)))
        count()
    del losses
    count()


@program
def history_of_a_trainer():
    class Trainer:
        def __init__(self):
            self.model, self.optimizer, self.history = network(), keras.optimizers.SGD(), {"hidden": []}

        def step(self, x, y):
            self.history["hidden"].append(tf.identity(self.model.layers[0](x)))
            return train(self.model, x, y, self.optimizer)

    trainer, (x, y) = Trainer(), tensors()
    for _ in range(20):
        trainer.step(x, y)
        if len(trainer.history["hidden"]) > 14:
            trainer.history["hidden"].clear()
        count()


@program
def tape_kept():
    model, (x, y) = network(), tensors()
    kept = None
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        kept = tape
        count()
        kept.gradient(loss, model.trainable_variables)
        count()


@program
def persistent_tape():
    model, optimizer, (x, y) = network(), keras.optimizers.SGD(), tensors()
    for _ in range(5):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        tape.gradient(loss, x)
        count()
        del tape
        count()


@program
def training_under_an_open_tape():
    model, optimizer, (x, y) = network(), keras.optimizers.Adam(), tensors()
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        for _ in range(4):
            train(model, x, y, optimizer)
            count()
    count()


@program
def updates_by_hand():
    weights = [tf.Variable(tf.random.normal([WIDTH, WIDTH])) for _ in range(3)]
    x = tensors()[0]
    for _ in range(6):
        with tf.GradientTape() as tape:
            y = x
            for weight in weights:
                y = tf.nn.relu(y @ weight)
            loss = tf.reduce_mean(y ** 2)
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.01 * gradient)
        count()


@program
def large_gradients_handed_over():
    """Gradients of 1 MiB that nobody but the optimizer has: those that are clipped go while the clipped ones are applied."""
    weights = [keras.Variable(np.zeros((ROWS, WIDTH), "float32")) for _ in range(3)]
    optimizers = keras.optimizers.Adam(global_clipnorm=1.0), keras.optimizers.SGD(clipvalue=0.1), keras.optimizers.SGD(weight_decay=0.1)
    for optimizer in optimizers:
        optimizer.build(weights)
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = sum(tf.reduce_mean((weight + 1.0) ** 2) for weight in weights)
            optimizer.apply(tape.gradient(loss, [weight.value for weight in weights]), weights)
            count()
            weights[0].assign(tf.ones([ROWS, WIDTH]) * 2.0)
            weights[1].value.assign_sub(tf.ones([ROWS, WIDTH]) * 2.0)
            count()


@program
def sparse_updates():
    """Embeddings, whose variables hand out copies once they were written by rows."""
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Embedding(ROWS, WIDTH), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)])
    optimizer, x, y = keras.optimizers.Adam(), tf.constant(np.arange(8 * 1024).reshape(1024, 8)), tf.zeros([1024, 1])
    for _ in range(6):
        train(model, x, y, optimizer)
        count()


@program
def generators():
    def batches():
        for i in range(6):
            batch = tf.random.normal([ROWS, WIDTH], seed=i)
            yield batch
            del batch

    model, optimizer, y = network(), keras.optimizers.SGD(), tf.zeros([ROWS, 1])
    for x in batches():
        train(model, x, y, optimizer)
        count()
    waiting = batches()
    next(waiting)
    count()
    del waiting, x
    count()


@program
def exceptions_kept():
    model, optimizer, (x, y) = network(), keras.optimizers.SGD(), tensors()
    kept = collections.deque(maxlen=3)
    for _ in range(6):
        train(model, x, y, optimizer)
        try:
            activation = model.layers[0](x)
            model.layers[2](tf.concat([activation] * 2, axis=1))
        except Exception as error:  # noqa: BLE001
            kept.append(error)
        count()
    kept.clear()
    count()


@program
def exception_in_gradient():
    @tf.custom_gradient
    def breaks(x):
        def grad(upstream):
            raise ValueError("on purpose")
        return x * 2.0, grad

    for _ in range(4):
        x = tf.Variable(tensors()[0])
        try:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(breaks(x))
            tape.gradient(loss, x)
        except ValueError:
            pass
        count()


@program
def out_of_memory():
    model, optimizer, (x, y) = network(), keras.optimizers.SGD(), tensors()
    for _ in range(2):              # the allocator waits ten seconds for memory
        train(model, x, y, optimizer)
        try:
            activation = model.layers[0](x)
            tf.zeros([1 << 42]) + tf.reduce_sum(activation)
        except tf.errors.ResourceExhaustedError:
            pass
        count()


@program
def nested_functions_and_closures():
    def outer(x):
        hidden = tf.nn.relu(x @ weight)

        def inner(scale):
            return tf.reduce_sum(hidden * scale)
        return inner

    weight = tf.Variable(tf.random.normal([WIDTH, WIDTH]))
    for i in range(6):
        inner = outer(tf.random.normal([ROWS, WIDTH], seed=i))
        inner(2.0)
        count()


@program
def models_made_and_dropped():
    x, y = tensors()
    for _ in range(4):
        model, optimizer = network(hidden=ROWS), keras.optimizers.Adam()
        train(model, x[:8], y[:8], optimizer)
        count()
        del model, optimizer
        keras.backend.clear_session()
        count()


@program
def gradient_accumulation():
    model, optimizer, (x, y) = network(), keras.optimizers.Adam(), tensors()
    model(x)
    sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]
    for i in range(8):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        for total, gradient in zip(sums, tape.gradient(loss, model.trainable_variables)):
            total.assign_add(gradient)
        if i % 4 == 3:
            optimizer.apply_gradients(zip(sums, model.trainable_variables))
            for total in sums:
                total.assign(tf.zeros_like(total))
        count()


@program
def gan():
    generator, discriminator = network(16, WIDTH, WIDTH), network()
    optimizers = keras.optimizers.Adam(), keras.optimizers.Adam()
    real = tensors()[0]
    for i in range(5):
        noise = tf.random.normal([ROWS, 16], seed=i)
        with tf.GradientTape() as one, tf.GradientTape() as other:
            fake = generator(noise, training=True)
            on_real, on_fake = discriminator(real, training=True), discriminator(fake, training=True)
            loss = tf.reduce_mean(on_fake ** 2) + tf.reduce_mean((on_real - 1) ** 2)
            fooled = tf.reduce_mean((on_fake - 1) ** 2)
        for tape, value, model, optimizer in ((one, loss, discriminator, optimizers[0]), (other, fooled, generator, optimizers[1])):
            optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        count()


@program
def arrays_given_to_layers():
    """Keras makes the tensors, and nobody but the call has them."""
    model, (x, y) = network(), arrays()
    for _ in range(4):
        model.layers[1](model.layers[0](x), training=True)
        count()
