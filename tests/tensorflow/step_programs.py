"""Keras training in one of several modes, 2 epochs: 32 batches, or 22 so that the last execution of an epoch runs fewer. Prints TensorFlow's own counters at the end."""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
BATCHES = {"graph": 32, "eager": 32, "executions": 32, "partial_executions": 22, "variable": 32}


def main(mode):
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((16, 16, 3)), keras.layers.Conv2D(8, 3, activation="relu"), keras.layers.BatchNormalization(),
                              keras.layers.Flatten(), keras.layers.Dense(10)])
    options = {"eager": {"run_eagerly": True}, "executions": {"steps_per_execution": 8}, "partial_executions": {"steps_per_execution": 8}}.get(mode, {})
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False, **options)
    x = np.random.rand(BATCHES[mode] // 2 * 16, 16, 16, 3).astype("float32")
    y = np.random.randint(0, 10, len(x))
    if mode == "variable":
        def make():
            for i in range(BATCHES[mode] // 2):
                n = 4 + (7 * i) % 23
                yield x[:n], y[:n]
        data = tf.data.Dataset.from_generator(make, output_signature=(tf.TensorSpec((None, 16, 16, 3)), tf.TensorSpec((None,), tf.int64)))
        model.fit(data, epochs=2, verbose=0)
    else:
        model.fit(x, y, batch_size=16, epochs=2, verbose=0)
    print(json.dumps(tf.config.experimental.get_memory_info("CPU:0")))


if __name__ == "__main__":
    main(sys.argv[1])
