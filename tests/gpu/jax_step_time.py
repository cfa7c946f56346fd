"""Step time of a JAX training, plain against recorded, alternating; prints the medians, their
ratio, and an interval that contains the ratio with 95 % confidence (bootstrap over the pairs). Measures, does not judge.

    jax_step_time.py VRAMSCOPE [ROUNDS] [MODEL]
"""
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys, time, json
sys.path.insert(0, sys.argv[1])
import jax, models
params, forward, batches = getattr(models, sys.argv[2])()
state = {"mu": jax.tree.map(jax.numpy.zeros_like, params), "nu": jax.tree.map(jax.numpy.zeros_like, params)}
step = models.make_step(forward)
batch = batches(0)
times = []
for i in range(300):
    began = time.perf_counter()
    params, state, loss = step(params, state, batch)
    loss.block_until_ready()
    times.append(time.perf_counter() - began)
print(json.dumps(times[50:]))
"""


def interval(plain, recorded, times=4000):
    """Of the median of the ratios of neighbouring runs."""
    ratios, chance = [r / p for p, r in zip(plain, recorded)], random.Random(0)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(times))
    return round(medians[times // 40], 4), round(medians[-times // 40 - 1], 4)


def main():
    vramscope, rounds, model = sys.argv[1], int((sys.argv[2:] or [5])[0]), (sys.argv[3:] or ["transformer"])[0]
    python = [sys.executable, "-c", PROGRAM, str(Path(__file__).resolve().parent.parent / "jax"), model]
    plain, recorded = [], []
    for _ in range(rounds):
        plain.append(statistics.median(json.loads(subprocess.check_output(python).splitlines()[-1])))
        with tempfile.TemporaryDirectory() as folder:
            command = [vramscope, "run", "-o", folder + "/out", "--quiet", "--", *python]
            recorded.append(statistics.median(json.loads(subprocess.check_output(command).splitlines()[-1])))
    low, high = interval(plain, recorded)
    print(json.dumps({"model": model, "plain_us": [round(t * 1e6, 1) for t in plain], "recorded_us": [round(t * 1e6, 1) for t in recorded],
                      "ratio": round(statistics.median(r / p for p, r in zip(plain, recorded)), 4), "interval": [low, high]}))


if __name__ == "__main__":
    main()
