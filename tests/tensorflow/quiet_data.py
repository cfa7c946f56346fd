"""Part of the programs that compare our numbers with TensorFlow's, here and in python/tests."""
import tensorflow as tf


def quiet(x, y, batch):
    """A pipeline without threads of its own: nothing is allocated between two readings."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    options.threading.max_intra_op_parallelism = 1
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(batch).with_options(options)
