"""What the Python side costs: the steps of a transformer, and tracing them, with its hooks in place and without, taking turns inside one process.

The hooks read structure (layer, line, role of each op) while a function is traced, and mark where steps begin and end. Run it under `vramscope run`.
Prints JSON: for steps and for traces the seconds without hooks, and the median ratio with its 95 % interval.

    vramscope run -- python python_side.py [--traces 12] [--pairs 40] [--steps 5] [--width 128] [--blocks 4] [--batch 16] [--length 128]
"""
import argparse
import gc
import inspect
import json
import os
import statistics
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # noqa: E402
from in_process import BATCH, LENGTH, block_ms, interval, training_step  # noqa: E402

ORIGINAL = "__vramscope_original__"  # on what python/vramscope/_hooks/wrapping.py puts in place of a function


def hooks():
    """[(owner, name, what stands there)] of everything that is wrapped in TensorFlow and Keras."""
    found, seen = [], set()
    modules = [module for name, module in list(sys.modules.items()) if name.split(".")[0] in ("tensorflow", "keras") and inspect.ismodule(module)]
    for owner in [*modules, *(value for module in modules for value in list(vars(module).values()) if inspect.isclass(value))]:
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        for name, value in list(vars(owner).items()):
            if callable(value) and not inspect.ismodule(value) and not inspect.isclass(value) and hasattr(value, ORIGINAL):
                found.append((owner, name, value))
    return found


class Hooks:
    def __init__(self):
        self._found = hooks()
        if not any(name == "_create_op_internal" for _, name, _ in self._found):
            raise SystemExit("nothing is hooked; run this under 'vramscope run'")

    def set(self, on):
        for owner, name, wrapper in self._found:
            setattr(owner, name, wrapper if on else getattr(wrapper, ORIGINAL))


def trace_s(step):
    """Seconds of this thread: tracing is Python, and other threads of the machine are nobody's business."""
    function = tf.function(step)
    gc.collect()
    began = time.thread_time()
    function.get_concrete_function()
    return time.thread_time() - began


def compare(hooked, rounds, measure):
    pairs = []
    for i in range(rounds):
        times = {}
        for on in ((False, True) if i % 2 == 0 else (True, False)):
            hooked.set(on)
            times[on] = measure()
        pairs.append((times[False], times[True]))
    ratios = [on / off for off, on in pairs]
    return {"plain_s": statistics.median(off for off, _ in pairs), "percent": round(100 * (statistics.median(ratios) - 1), 2),
            "interval_percent": [round(100 * (end - 1), 2) for end in interval(ratios)]}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--traces", type=int, default=12, help="pairs of traces")
    arguments.add_argument("--pairs", type=int, default=40, help="pairs of blocks of steps")
    arguments.add_argument("--steps", type=int, default=5)
    arguments.add_argument("--width", type=int, default=128)
    arguments.add_argument("--blocks", type=int, default=4)
    arguments.add_argument("--batch", type=int, default=BATCH)
    arguments.add_argument("--length", type=int, default=LENGTH, help="tokens of an example")
    asked = arguments.parse_args()
    asked.eager = True
    step = training_step(asked)
    step()                                  # makes the variables
    hooked = Hooks()
    said = {"tracing": compare(hooked, asked.traces, lambda: trace_s(step))}
    hooked.set(True)
    train = tf.function(step)
    block_ms(train, 20)
    said["step"] = compare(hooked, asked.pairs, lambda: block_ms(train, asked.steps)[0] / 1e3)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
