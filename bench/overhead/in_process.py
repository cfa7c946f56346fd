"""Step time of a transformer with and without recording, taking turns inside one process.

Two processes differ by several percent whatever they run (other kernels are chosen, other clocks); blocks of steps in one process
do not. Run it under `vramscope run`: the recorder is paused and resumed through the flag that the collector uses to stop it, and the hooks of
the Python side are taken away and put back.
Prints JSON: milliseconds a step, the median ratio and its 95 % interval, and TensorFlow's own profiler for comparison (--profiler).

    vramscope run -- python in_process.py [--pairs 30] [--steps 20] [--profiler 2] [--eager] [--width 512] [--blocks 6] [--batch 16] [--length 128] [--warm 20]

With --warm 1 it begins right after the step that traces, to see what the first hundred steps cost. With --pairs 0 it only trains for so many steps: for the size of a trace without pauses.
"""
import argparse
import json
import os
import statistics
import tempfile
import time

import hooks  # before TensorFlow

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from recorder import Recorder  # noqa: E402
from turns import interval  # noqa: E402

HEADS, WORDS, BATCH, LENGTH = 8, 1000, 16, 128


def transformer(width, blocks, length=LENGTH):
    layers = tf.keras.layers
    tokens = layers.Input((length,), dtype="int32")
    x = layers.Embedding(WORDS, width)(tokens)
    for _ in range(blocks):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(HEADS, width // HEADS)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x)))
    return tf.keras.Model(tokens, layers.Dense(WORDS)(x))


def train_function(model, loss_of, x, y):
    """One step with Adam on this batch."""
    optimizer = tf.keras.optimizers.Adam()

    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return step


def training_step(asked):
    text = np.random.default_rng(0).integers(0, WORDS, (asked.batch, asked.length + 1))
    step = train_function(transformer(asked.width, asked.blocks, asked.length), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                          tf.constant(text[:, :-1]), tf.constant(text[:, 1:]))
    return step if asked.eager else tf.function(step)


def block_ms(step, steps):
    """Milliseconds a step: on the clock, and of all threads together."""
    began, began_cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        loss = step()
    loss.numpy()
    return (time.perf_counter() - began) / steps * 1e3, (time.process_time() - began_cpu) / steps * 1e3


def early(pairs, cpu, steps):
    """The first hundred steps beside the others, on the clock and in processor time: are they slower, and because of the recorder?"""
    first, out = max(1, 50 // steps), {}
    for name, part in (("first_100_steps", slice(0, first)), ("later_steps", slice(first, None))):
        for unit, values in (("ms", pairs[part]), ("cpu_ms", cpu[part])):
            for i, side in enumerate(("plain", "recorded") if values else ()):
                out.setdefault(name, {})[f"{side}_{unit}"] = round(statistics.median(value[i] for value in values), 3)
    return out


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--pairs", type=int, default=30)
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--profiler", type=int, default=0, help="blocks under TensorFlow's profiler")
    arguments.add_argument("--eager", action="store_true")
    arguments.add_argument("--warm", type=int, default=0, help="steps before the first pair; 1: only the one that traces")
    arguments.add_argument("--width", type=int, default=512)
    arguments.add_argument("--blocks", type=int, default=6)
    arguments.add_argument("--batch", type=int, default=BATCH)
    arguments.add_argument("--length", type=int, default=LENGTH, help="tokens of an example")
    asked = arguments.parse_args()
    step = training_step(asked)
    block_ms(step, asked.warm or (5 if asked.eager else 20))
    if asked.pairs == 0:
        block_ms(step, asked.steps)
        return
    recorder = Recorder()
    before, pairs, cpu = recorder.events(), [], []
    for i in range(asked.pairs):
        order = (False, True) if i % 2 == 0 else (True, False)
        times = {}
        for on in order:
            recorder.set(on)
            hooks.set_hooks(on)
            times[on] = block_ms(step, asked.steps)
        pairs.append((times[False][0], times[True][0]))
        cpu.append((times[False][1], times[True][1]))
    events = (recorder.events() - before) / (asked.pairs * asked.steps)
    recorder.set(False)
    hooks.set_hooks(False)
    profiled = []
    for _ in range(asked.profiler):
        with tempfile.TemporaryDirectory() as folder:
            tf.profiler.experimental.start(folder)
            profiled.append(block_ms(step, asked.steps)[0])
            tf.profiler.experimental.stop()
    ratios = [recorded / plain for plain, recorded in pairs]
    more = [recorded - plain for plain, recorded in cpu]
    low, high = interval(ratios)
    plain = statistics.median(p for p, _ in pairs)
    print(json.dumps({
        "tensorflow": tf.__version__, "device": "GPU" if tf.config.list_physical_devices("GPU") else "CPU",
        "mode": "eager" if asked.eager else "function", "events_per_step": round(events), "plain_ms": round(plain, 3),
        "recorded_ms": round(statistics.median(r for _, r in pairs), 3), **early(pairs, cpu, asked.steps),
        "overhead_percent": round(100 * (statistics.median(ratios) - 1), 2),
        "overhead_interval_percent": [round(100 * (low - 1), 2), round(100 * (high - 1), 2)],
        "cpu_ns_per_event": [round(1e6 * ms / events) for ms in (statistics.median(more), *interval(more))],
        "profiler_ms": [round(ms, 3) for ms in profiled],
        "profiler_percent": round(100 * (statistics.median(profiled) / plain - 1), 1) if profiled else None}))


if __name__ == "__main__":
    main()
