"""What a TensorFlow program makes and drops: nothing of ours may keep any of it."""
import vramscope
from references import Local, Wrong, alive_after, watch
from tensorflow_base import ROWS, WIDTH, arrays, compiled, keras, network, tensors, tf, train


def _eager():
    x = watch("batch", tf.random.normal([ROWS, WIDTH]))
    model, optimizer = watch("model", network()), watch("optimizer", keras.optimizers.Adam())
    watch("layer", model.layers[0])
    watch("variable", model.layers[0].kernel.value)
    with tf.GradientTape(persistent=True) as tape:
        hidden = watch("activation", model.layers[0](x))
        loss = watch("loss", tf.reduce_mean(hidden ** 2))
    watch("tape", tape)
    gradient, = tape.gradient(loss, [model.layers[0].kernel.value])
    watch("gradient", gradient)
    local = watch("local of a frame that trains", Local())
    for _ in range(4):
        train(model, x, tf.zeros([ROWS, 1]), optimizer)
    del local


def _functions():
    def python_function(x):
        return tf.reduce_sum(x * weight)

    weight = watch("variable of a function", tf.Variable(tf.ones([WIDTH])))
    watch("Python function", python_function)
    function = watch("tf.function", tf.function(python_function))
    watch("result of a function", function(tf.ones([ROWS, WIDTH])))


def _errors():
    class Broken(keras.layers.Layer):
        def call(self, x):
            local = watch("local of a frame that raises", Local())
            raise watch("error in a layer", Wrong(id(local)))

    @tf.custom_gradient
    def broken_gradient(x):
        def grad(upstream):
            local = watch("local of a gradient that raises", Local())
            raise watch("error in a gradient", Wrong(id(local)))
        return x * 1.0, grad

    @tf.function
    def broken_function(x):
        local = watch("local of a function that does not trace", Local())
        raise watch("error in a function", Wrong(id(local)))

    def differentiate():
        x = tensors()[0]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = broken_gradient(x)
        tape.gradient(y, x)

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            local = watch("local of a callback", Local())
            raise watch("error in a callback", Wrong(id(local)))

    def fit():
        compiled().fit(*arrays(), batch_size=ROWS, verbose=0, callbacks=[watch("callback", Stop())])

    for wrong in (lambda: Broken()(tensors()[0]), differentiate, lambda: broken_function(tensors()[0]), fit):
        try:
            wrong()
        except Wrong:
            pass


def _generators():
    def batches():
        batch = watch("batch of a generator", tf.random.normal([ROWS, WIDTH]))
        model(batch)
        yield

    model = network()
    waiting = watch("generator", batches())
    next(waiting)


def _datasets():
    dataset = watch("dataset", tf.data.Dataset.from_tensors(watch("source of a dataset", tf.ones([ROWS, WIDTH]))).cache())
    for batch in dataset:
        watch("element of a dataset", batch)


def _looked_at():
    """`who_holds`, of a tensor and of its address."""
    from vramscope import _address
    kept = [watch("tensor that was looked at", tf.random.normal([ROWS, WIDTH]))]
    local = watch("local of the frame that looks", Local())
    assert "kept[0]" in str(vramscope.who_holds(kept[0]))
    assert "kept[0]" in str(vramscope.who_holds(_address.of(kept[0])[0]))
    del local


def references():
    def drop():
        for part in (_eager, _functions, _errors, _generators, _datasets, _looked_at):
            part()

    return alive_after(drop)
