"""Step time of a JAX transformer with and without recording, taking turns in one process: two processes differ by several percent
whatever they run. Run it under `vramscope run`, where the recorder is paused and resumed through the flag that the collector uses to stop
it; its hooks are called all the time, and return at once while it is paused.

    vramscope run -- python jax_in_process.py [--seconds 60] [--width 768] [--blocks 12] [--batch 8] [--length 1024]

The sizes that are the defaults are those of GPT-2, where the card is the bottleneck; `--width 256 --blocks 4 --length 128` is bound by the
CPU's dispatch: the worst case. Prints JSON: milliseconds a step, events a step, the median ratio of neighbouring blocks and its 95 % interval.
"""
import argparse
import json
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/jax"))
import jax  # noqa: E402
import models  # noqa: E402
from recorder import Recorder  # noqa: E402
from turns import interval  # noqa: E402

BLOCK_S = 0.4


def training(asked):
    params, forward, batches = models.transformer(width=asked.width, heads=asked.width // 64, layers=asked.blocks, batch=asked.batch, length=asked.length)
    state = {"mu": jax.tree.map(jax.numpy.zeros_like, params), "nu": jax.tree.map(jax.numpy.zeros_like, params)}
    step, batch = models.make_step(forward), batches(0)

    def block_ms(steps):
        nonlocal params, state
        began = time.perf_counter()
        for _ in range(steps):
            params, state, loss = step(params, state, batch)
        loss.block_until_ready()
        return (time.perf_counter() - began) / steps * 1e3

    return block_ms


def measure(block_ms, recorder, seconds):
    """Milliseconds a step of neighbouring blocks, (plain, recorded); events in a recorded step."""
    block_ms(20)
    steps = max(3, round(BLOCK_S * 1e3 / block_ms(5)))
    times, events, end = {False: [], True: []}, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for recorded in random.sample([False, True], 2):
            recorder.set(recorded)
            block_ms(2)
            before = recorder.events()
            times[recorded].append(block_ms(steps))
            made = recorder.events() - before
            if (made >= steps) != recorded:
                sys.exit(f"{made} events in {steps} steps, recorded: {recorded}: the spool's header is not where this program thinks")
            events += made
    recorder.set(True)
    return times[False], times[True], round(events / (len(times[True]) * steps))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=60)
    for name, size in (("width", 768), ("blocks", 12), ("batch", 8), ("length", 1024)):
        arguments.add_argument(f"--{name}", type=int, default=size)
    asked = arguments.parse_args()
    block_ms = training(asked)
    block_ms(3)
    plain, recorded, events = measure(block_ms, Recorder(), asked.seconds)
    ratios = [r / p for p, r in zip(plain, recorded)]
    low, high = interval(ratios)
    print(json.dumps({"jax": jax.__version__, "device": jax.devices()[0].device_kind, "plain_ms": round(statistics.median(plain), 3),
                      "events_per_step": events, "pairs": len(ratios), "overhead_percent": round(100 * (statistics.median(ratios) - 1), 2),
                      "interval_percent": [round(100 * (low - 1), 2), round(100 * (high - 1), 2)]}))


if __name__ == "__main__":
    main()
