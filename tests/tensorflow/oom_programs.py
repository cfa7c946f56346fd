"""TensorFlow programs that run out of memory for a chosen cause, and serve everything with that cause taken away.

`oom_programs.py NAME [KEY=VALUE ...]` runs one; TF_CPU_BFC_MEM_LIMIT_IN_MB is the pool's limit. Prints whether every request was served."""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # its convolutions take scratch memory past the allocator
MIB = 1 << 20


def block(mib):
    import tensorflow as tf

    return tf.zeros([int(mib * MIB) // 4])


def request(mib):
    block(mib)


def leak(mib):
    """A Keras callback that keeps `mib` MiB of each of 60 batches."""
    import keras
    import numpy as np

    kept = []

    class Keep(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if mib > 0:
                kept.append(block(mib) + 1.0)

    model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    x = np.random.rand(60 * 8, 64).astype("float32")
    model.fit(x, x[:, :1], batch_size=8, verbose=0, callbacks=[Keep()])


def fragmentation(holes):
    """28 blocks of 2 MiB, half of which go: every second one, or the last ones. Then 16 MiB are asked for."""
    blocks = [block(2) for _ in range(28)]
    kept = blocks[0::2] if holes else blocks[:14]
    del blocks
    block(16)
    del kept


def spike(width):
    """The gradient of a convolution needs scratch memory many times as large as its picture: that of a filter's width, squared."""
    import tensorflow as tf

    model = tf.Variable(block(8))
    if width:
        picture = tf.zeros([1, 64, 64, 16])
        tf.raw_ops.Conv2DBackpropFilter(input=picture, filter_sizes=[width, width, 16, 16], out_backprop=picture, strides=[1, 1, 1, 1], padding="SAME")
    block(16)
    del model


def main(name, value):
    import tensorflow as tf

    served = True
    try:
        {"request": request, "leak": leak, "fragmentation": fragmentation, "spike": spike}[name](value)
    except tf.errors.ResourceExhaustedError:
        served = False
    print(json.dumps({"served": served}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if sys.argv[1] in ("request", "leak") else int(sys.argv[2]))
