"""Small TensorFlow programs, half of which keep something in every step. `leak_programs.py NAME` runs one."""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
STEPS = 24
CLEAN = ["fit", "fit_eager", "function_loop", "eager_loop", "variable_batch", "with_evaluation", "lstm", "bounded_window", "warm_cache", "moving_average",
         "largest_so_far"]
LEAKS = ["callback_keeps", "callback_keeps_late", "callback_keeps_every_third", "function_loop_keeps_loss", "eager_loop_keeps_gradients", "new_variable_each_step",
         "dictionary_by_step", "keeps_inputs", "keeps_outputs_of_variable_batch", "concat_grows", "numpy_side_list_and_tensor"]


# Long because each program is a branch of it.
def main(name):
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    x = np.random.rand(STEPS * 8, 64).astype("float32")
    y = np.random.rand(STEPS * 8, 1).astype("float32")
    kept = []

    def model(**compile_options):
        m = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(1)])
        m.compile("adam", "mse", jit_compile=False, **compile_options)
        return m

    class Keep(keras.callbacks.Callback):
        def __init__(self, when):
            super().__init__()
            self.when = when

        def on_train_batch_end(self, batch, logs=None):
            if self.when(batch):
                kept.append(tf.zeros([64, 64]) + 1.0)

    def batches(sizes):
        def make():
            for i, n in enumerate(sizes):
                yield x[:n], y[:n]
        return tf.data.Dataset.from_generator(make, output_signature=(tf.TensorSpec((None, 64)), tf.TensorSpec((None, 1))))

    fit = dict(batch_size=8, epochs=1, verbose=0)
    if name == "fit":
        model().fit(x, y, **fit)
    elif name == "fit_eager":
        model(run_eagerly=True).fit(x, y, **fit)
    elif name == "with_evaluation":
        model().fit(x, y, validation_data=(x[:32], y[:32]), batch_size=16, epochs=3, verbose=0)
    elif name == "variable_batch":
        model().fit(batches([4 + (7 * i) % 29 for i in range(STEPS)]), verbose=0)
    elif name == "lstm":
        m = keras.Sequential([keras.layers.Input((8, 8)), keras.layers.LSTM(16), keras.layers.Dense(1)])
        m.compile("adam", "mse", jit_compile=False)
        m.fit(x.reshape(-1, 8, 8), y, **fit)
    elif name == "callback_keeps":
        model().fit(x, y, callbacks=[Keep(lambda b: True)], **fit)
    elif name == "callback_keeps_late":
        x, y = np.concatenate([x] * 2), np.concatenate([y] * 2)
        model().fit(x, y, callbacks=[Keep(lambda b: b >= STEPS)], **fit)
    elif name == "callback_keeps_every_third":
        x, y = np.concatenate([x] * 2), np.concatenate([y] * 2)
        model().fit(x, y, callbacks=[Keep(lambda b: b % 3 == 0)], **fit)
    else:
        m = model()
        optimizer = keras.optimizers.SGD(0.01)
        optimizer.build(m.trainable_variables)
        average = tf.Variable(tf.zeros([64, 64]))
        grown = tf.zeros([1, 1024])

        def step(a, b):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(m(a, training=True) - b))
            gradients = tape.gradient(loss, m.trainable_variables)
            optimizer.apply_gradients(zip(gradients, m.trainable_variables))
            return loss, gradients

        eager = name in ("eager_loop", "eager_loop_keeps_gradients")
        train = step if eager else tf.function(step, reduce_retracing=True)
        by_step = {}
        for i in range(STEPS):
            n = 4 + (7 * i) % 29 if "variable" in name and "batch" in name else 8
            a, b = tf.constant(x[:n]), tf.constant(y[:n])
            loss, gradients = train(a, b)
            if name == "function_loop_keeps_loss":
                kept.append(loss)
            elif name == "eager_loop_keeps_gradients":
                kept.append(gradients[0])
            elif name == "new_variable_each_step":
                kept.append(tf.Variable(tf.zeros([32, 32])))
            elif name == "dictionary_by_step":
                by_step[i] = tf.random.normal([16, 64])
            elif name == "keeps_inputs":
                kept.append(a + 0.0)
            elif name == "keeps_outputs_of_variable_batch":
                kept.append(m(a))
            elif name == "concat_grows":
                grown = tf.concat([grown, tf.ones([1, 1024])], axis=0)
            elif name == "numpy_side_list_and_tensor":
                kept.append((float(loss), tf.identity(m.trainable_variables[0])))
            elif name == "largest_so_far":  # a buffer that grows to the largest batch and stays
                need = 16 + (7 * i) % 11
                if not kept or kept[0].shape[0] < need:
                    kept[:] = [tf.zeros([need, 256])]
            elif name == "bounded_window":
                kept.append(tf.random.normal([16, 64]))
                del kept[:-4]
            elif name == "warm_cache":
                if i < 3:
                    kept.append(tf.random.normal([64, 64]))
            elif name == "moving_average":
                average.assign(0.9 * average + 0.1 * tf.random.normal([64, 64]))
    print(json.dumps({"kept": len(kept)}))


if __name__ == "__main__":
    main(sys.argv[1])
