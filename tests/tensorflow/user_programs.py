"""Programs as TensorFlow users write them. Each prints, as JSON in its last line, what TensorFlow's counter, the kernel or a stopwatch says."""
import gc
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

KIB = 1024


def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * KIB for line in status if line.startswith("VmRSS:"))


def in_pool():
    return tf.config.experimental.get_memory_info("CPU:0")["current"]


def graphs():
    @tf.function
    def inner(x):
        for _ in range(1000):
            x = tf.sin(x) + 1.0
        return x

    @tf.function
    def outer(x):
        for _ in range(500):
            x = tf.cos(x) + 1.0
        return inner(x)

    tf.function(lambda x: x + 1.0).get_concrete_function(tf.TensorSpec([1]))       # what the first trace loads is not the graph's
    gc.collect()
    gc.disable()                                                # or the kernel's count falls when it likes
    before = resident()
    for length in (3, 4, 5):
        outer.get_concrete_function(tf.TensorSpec([length]))
    grown = resident() - before
    outer(tf.zeros([3]))                                        # without an allocation there is no trace
    return {"grown": grown}


def layers():
    """A model of many layers, traced by the line that trains it."""
    import keras
    x = made = keras.Input((8,))
    for _ in range(60):
        x = keras.layers.Dense(8)(x)
    before = resident()
    model = keras.Model(made, x)
    model.compile("sgd", "mse", jit_compile=False)
    data = np.ones((8, 8), "float32")
    model.fit(data, data, batch_size=4, verbose=0)
    return {"trained": resident() - before}


def building():
    """Many layers, and nothing that is traced."""
    import keras
    keras.layers.Dense(8)(keras.Input((8,)))                    # what the first layer loads is not its own
    gc.collect()
    gc.disable()
    x = keras.Input((8,))
    before = resident()
    for _ in range(300):
        x = keras.layers.Dense(8)(x)
    grown = resident() - before
    tf.constant(1.0)
    return {"grown": grown}


def session():
    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    before = resident()
    x = v1.placeholder(tf.float32, [8])
    y = x
    for _ in range(2000):
        y = tf.sin(y) + 1.0
    built = resident()
    with v1.Session() as running:
        running.run(y, {x: np.ones(8)})
        running.run(y, {x: np.ones(8)})
    return {"built": built - before}


def settled():
    """What the pool holds once the threads of a pipeline have run as far ahead as they may, and wait."""
    last, since, deadline = in_pool(), time.monotonic(), time.monotonic() + 60
    while time.monotonic() < min(since + 0.2, deadline):
        time.sleep(0.01)
        now = in_pool()
        if now != last:
            last, since = now, time.monotonic()
    return last


BUFFER, ELEMENT, BATCH = 512, 16 * KIB, 30


def pipeline():
    data = np.ones((2048, ELEMENT // 4), "float32")
    source = tf.data.Dataset.from_tensor_slices(data)
    mapped = source.map(lambda x: x + 1.0)
    shuffled = mapped.shuffle(BUFFER)
    batches = shuffled.batch(BATCH, drop_remainder=True).prefetch(2)
    weight = tf.Variable(tf.zeros([ELEMENT // 4]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x * weight)
        weight.assign_sub(tape.gradient(loss, weight))

    before = in_pool()
    held = []
    for number, x in enumerate(batches.take(20), 1):
        step(x)
        if number in (5, 10, 15):
            held.append(settled() - before)
    return {"held": held, "source": data.nbytes}


def shuffled():
    """Pairs of images and labels, with no function of the program's in between. TensorFlow copies rows that are not aligned."""
    images, labels = np.ones((2048, ELEMENT // 4 - 1), "float32"), np.ones((2048,), "int64")
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    data = data.shuffle(BUFFER)
    data = data.batch(BATCH, drop_remainder=True)
    weight = tf.Variable(tf.zeros([ELEMENT // 4 - 1]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((x + 1.0) * weight)
        weight.assign_sub(tape.gradient(loss, weight))

    before = in_pool()
    for number, (x, _) in enumerate(data.take(20), 1):
        step(x)
        if number == 10:
            held = settled() - before
    return {"held": held}


def generator():
    def numbers():
        for _ in range(64):
            yield np.ones((KIB,), "float32")

    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((KIB,), tf.float32))
    data = data.cache()
    data = data.padded_batch(8)
    for _ in data:
        pass
    return {}


def copied(rows):
    """An array that TensorFlow has to copy: it shares the memory of those that happen to be aligned."""
    return np.ones(rows * 2048 + 1, "float32")[1:].reshape(rows, 2048)


def arrays():
    tf.zeros([1])
    before = in_pool()
    table = tf.constant(copied(1024))
    between = in_pool()
    rows = tf.convert_to_tensor(copied(512))
    after = in_pool()
    weight = tf.Variable(tf.zeros([2048, 1]))
    optimizer = tf.keras.optimizers.SGD(0.01)
    for number in range(12):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(table[number:number + 4], weight))
        optimizer.apply([tape.gradient(loss, weight)], [weight])
    tf.constant(np.ones((1024, 1024), "float32"))                # gone at once
    return {"table": between - before, "rows": after - between, "length": len(rows)}


def training_step(model, optimizer):
    @tf.function(reduce_retracing=True)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return step


def small_model(width=256):
    import keras
    return keras.Sequential([keras.layers.Dense(width, activation="relu"), keras.layers.Dense(width)])


def own_loop():
    import keras
    data = tf.data.Dataset.from_tensor_slices(np.ones((250, 256), "float32")).batch(32)
    step = training_step(small_model(), keras.optimizers.SGD(0.01))
    samples, begins = [], []
    for _ in range(4):
        for x in data:
            begins.append(time.perf_counter())
            step(x)
            samples.append(int(x.shape[0]))
            time.sleep(0.05)
    between = sorted(after - before for before, after in zip(begins[10:], begins[11:]))
    return {"samples": samples, "interval": between[len(between) // 2]}


def fit():
    class Counter(tf.keras.callbacks.Callback):
        def __init__(self):
            self.counts = []

        def on_train_batch_end(self, batch, logs=None):
            self.counts.append(int(seen.numpy()))

    seen = tf.Variable(0, trainable=False)

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = small_model()

        def call(self, x):
            return self.inner(x)

        def train_step(self, data):
            seen.assign(tf.shape(data[0])[0])
            return super().train_step(data)

    model, counter = Model(), Counter()
    model.compile("sgd", "mse", jit_compile=False)
    data = np.ones((250, 256), "float32")
    model.fit(data, data, batch_size=32, epochs=3, verbose=0, shuffle=False, callbacks=[counter], validation_data=(data[:10], data[:10]))
    return {"samples": counter.counts}


def long_sequence():
    import keras
    class Scores(keras.layers.Layer):
        def call(self, x):
            return tf.nn.softmax(tf.matmul(x, x, transpose_b=True))

    step = training_step(keras.Sequential([keras.layers.Dense(64), Scores()]), keras.optimizers.SGD(0.01))
    for number in range(1, 21):
        step(tf.ones([4, 200 if number == 14 else 100, 64]))
    return {}


def float64_array():
    weights = np.random.rand(512, 512)
    x = tf.constant(weights)                                    # enters
    y = tf.Variable(tf.zeros([512, 512]), name="y")
    for _ in range(6):
        with tf.GradientTape() as tape:
            product = tf.matmul(x, x)                           # uses
            loss = tf.reduce_sum(tf.cast(product, tf.float32) * y)
        y.assign_sub(tape.gradient(loss, y))
    return {}


def float64_cast():
    weight = tf.Variable(tf.zeros([512, 512]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            wide = tf.cast(x, tf.float64)                       # enters
            wide = tf.matmul(wide, wide) + 1.0                  # uses
            loss = tf.reduce_sum(tf.cast(wide, tf.float32) * weight)
        weight.assign_sub(tape.gradient(loss, weight))

    for _ in range(6):
        step(tf.ones([512, 512]))
    return {}


def tape():
    weight = tf.Variable(tf.ones([512, 512]))
    optimizer = tf.keras.optimizers.SGD(1e-6)
    kept = []
    for _ in range(8):
        with tf.GradientTape(persistent=True) as recorded:      # kept
            y = x = tf.ones([512, 512])
            for _ in range(4):
                y = tf.nn.relu(tf.matmul(y, weight))
            loss = tf.reduce_mean(y)
        optimizer.apply([recorded.gradient(loss, weight)], [weight])
        del x, y
        with tf.GradientTape() as other:                        # of the next step
            pass
        del other
        before = in_pool()
        del recorded
        kept.append(before - in_pool())
    return {"kept": kept}


def layers_in_a_loop():
    """Building is not training: models of growing depth are built, and one batch goes through each."""
    import keras
    built = []
    for depth in range(1, 25):
        model = keras.Sequential([keras.layers.Dense(64) for _ in range(4)])
        model(tf.ones([2, 64]))
        built.append(model)
    return {"built": len(built)}


def host():
    """What Python itself holds: an array and a list, by line."""
    array = np.ones((3 * KIB, KIB))                             # 24 MiB
    words = [str(number) * 20 for number in range(100_000)]     # strings
    weight = tf.Variable(tf.zeros([64]))
    for _ in range(12):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight)
        weight.assign_sub(tape.gradient(loss, weight))
    gc.collect()
    return {"array": array.nbytes, "words": sum(map(sys.getsizeof, words)) + sys.getsizeof(words)}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
