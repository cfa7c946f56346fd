"""Step time of a transformer with the op `bytes_in_use` inside and without, taking turns inside one process; and, for comparison, with
TensorFlow's `get_memory_info` read from Python after each step. Needs no recording. Prints JSON with the median ratios and their 95 %
intervals.

    PYTHONPATH=python python bench/overhead/op_in_step.py [--pairs 40] [--steps 20] [--width 512] [--blocks 6]
"""
import argparse
import functools
import json
import os
import statistics

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from in_process import BATCH, LENGTH, WORDS, block_ms, transformer  # noqa: E402
from turns import interval  # noqa: E402

import vramscope.tf as vtf  # noqa: E402

DEVICE = vtf.default_device()


def steps_to_compare(width, blocks):
    """The same training step three times: plain, with the op in it, and followed by a read from Python."""
    model, optimizer = transformer(width, blocks), tf.keras.optimizers.Adam()
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    text = np.random.default_rng(0).integers(0, WORDS, (BATCH, LENGTH + 1))
    x, y = tf.constant(text[:, :-1]), tf.constant(text[:, 1:])
    optimizer.build(model.trainable_variables)

    def step(read):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        if read:
            with tf.control_dependencies([loss]), tf.device(DEVICE):       # after the forward pass, where most is alive
                used = vtf.bytes_in_use()
            with tf.control_dependencies([used]):
                loss = tf.identity(loss)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    compiled = tf.function(step)
    plain, with_op = functools.partial(compiled, False), functools.partial(compiled, True)

    def from_python():
        loss = plain()
        tf.config.experimental.get_memory_info(DEVICE)
        return loss

    return {"plain": plain, "op": with_op, "python": from_python}


def compared(pairs, name):
    ratios = [pair[name] / pair["plain"] for pair in pairs]
    low, high = interval(ratios)
    return {"overhead_percent": round(100 * (statistics.median(ratios) - 1), 3),
            "interval_percent": [round(100 * (low - 1), 3), round(100 * (high - 1), 3)]}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--pairs", type=int, default=40)
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--width", type=int, default=512)
    arguments.add_argument("--blocks", type=int, default=6)
    asked = arguments.parse_args()
    steps = steps_to_compare(asked.width, asked.blocks)
    for step in steps.values():
        block_ms(step, asked.steps)
    pairs, names = [], list(steps)
    for i in range(asked.pairs):
        turn = names[i % 3:] + names[:i % 3]
        pairs.append({name: block_ms(steps[name], asked.steps)[0] for name in turn})
    print(json.dumps({
        "tensorflow": tf.__version__, "device": DEVICE, "pairs": asked.pairs, "steps": asked.steps,
        "plain_ms": round(statistics.median(pair["plain"] for pair in pairs), 3), "op": compared(pairs, "op"),
        "get_memory_info": compared(pairs, "python")}))


if __name__ == "__main__":
    main()
