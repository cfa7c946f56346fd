"""TensorFlow programs that run in functions, in Keras' own loops, or read from tf.data."""
from counted import program
from tensorflow_base import ROWS, WIDTH, Count, arrays, batches, compiled, count, keras, network, tensors, tf, train


@program
def graph_loop():
    model, optimizer, (x, y) = network(), keras.optimizers.Adam(), tensors()

    @tf.function(jit_compile=False)
    def step(x, y):
        return train(model, x, y, optimizer), model.layers[0](x)

    for _ in range(6):
        step(x, y)
        count()


@program
def retracing():
    model, optimizer = network(), keras.optimizers.SGD()

    @tf.function(jit_compile=False)
    def step(x, y):
        return train(model, x, y, optimizer)

    for i in range(4):
        step(*tensors(ROWS + 8 * i))
        count()
    for i in range(4):
        again = tf.function(lambda x: tf.nn.relu(x) * float(i))
        again(tf.ones([ROWS, WIDTH]))
        count()


@program
def function_that_raises():
    @tf.function(jit_compile=False)
    def step(x):
        tf.debugging.assert_less(tf.reduce_sum(x), 0.0)
        return x * 2.0

    @tf.function(jit_compile=False)
    def does_not_trace(x):
        return tf.matmul(x, tf.ones([3, 3]))

    for i in range(3):
        for function in (step, does_not_trace):
            try:
                function(tf.ones([ROWS, WIDTH + i]))
            except (tf.errors.InvalidArgumentError, ValueError):
                pass
            count()


@program
def fit_with_callbacks():
    compiled().fit(batches(4), shuffle=False, epochs=2, validation_data=batches(1), verbose=0,
                   callbacks=[Count(), keras.callbacks.ReduceLROnPlateau(), keras.callbacks.History()])


@program
def fit_eagerly():
    compiled(run_eagerly=True).fit(batches(3), shuffle=False, epochs=2, verbose=0, callbacks=[Count()])


@program
def fit_with_arrays():
    """Keras reads ahead in other threads: only what is left at the end is the same in every run."""
    x, y = arrays(3 * ROWS)
    compiled().fit(x, y, batch_size=ROWS, epochs=2, verbose=0)


@program
def custom_train_step():
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def call(self, x, training=False):
            return self.inner(x, training=training)

        def train_step(self, batch):
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(gradients, self.trainable_variables)
            return {"loss": loss}

    for eager in (False, True):
        model = Net()
        model.compile(keras.optimizers.Adam(), run_eagerly=eager, jit_compile=False)
        model.fit(batches(3), shuffle=False, epochs=1, verbose=0, callbacks=[Count()])


@program
def evaluate_and_predict():
    model, (x, y) = compiled(), arrays()
    model.evaluate(batches(2), verbose=0, callbacks=[Count()])
    model.predict(batches(2), verbose=0, callbacks=[Count()])
    for _ in range(2):
        model.train_on_batch(x, y)
        count()
        model.predict_on_batch(x)
        count()


@program
def callback_that_raises():
    class Break(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                raise RuntimeError("on purpose")

    model = compiled()
    for _ in range(3):
        try:
            model.fit(batches(3), shuffle=False, verbose=0, callbacks=[Break()])
        except RuntimeError:
            pass
        count()


@program
def dataset_pipeline():
    model, optimizer = network(), keras.optimizers.SGD()
    dataset = batches(4).cache().shuffle(4, seed=1).repeat(2)
    for x, y in dataset:
        train(model, x, y, optimizer)
        count()
    del dataset, x, y
    count()
