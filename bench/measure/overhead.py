"""Step time of a transformer, plain and recorded in alternating runs, and the size of its trace."""
import json
import math
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from measure.tree import ROOT, Measured

NAMES = ["tf_step_overhead", "trace_bytes_per_event"]
PAIRS = 6
STUDENT_T_95 = 2.571  # two-sided, for PAIRS - 1 degrees of freedom


def step_seconds(command):
    """The fastest quarter of the steps stands for a run: what is slower was disturbed by something else."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    steps = sorted(json.loads(done.stdout.splitlines()[-1])["step_s"])
    return statistics.mean(steps[:len(steps) // 4])


def paired_overhead(ratios):
    """Percent, with its 95 % confidence interval, from the logarithms of recorded / plain of each pair."""
    logs = [math.log(ratio) for ratio in ratios]
    middle, spread = statistics.mean(logs), STUDENT_T_95 * statistics.stdev(logs) / math.sqrt(len(logs))
    percent = [100 * math.expm1(x) for x in (middle, middle - spread, middle + spread)]
    return Measured(*percent)


def measure(tree):
    workload = [tree.python, ROOT / "bench/overhead/transformer.py"]
    ratios = []
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        for pair in range(PAIRS):
            out = Path(folder) / str(pair)
            recorded = [tree.program, "run", "--quiet", "-o", out, "--", *workload]
            # Who goes first takes turns too.
            seconds = {}
            for kind in ("plain", "recorded") if pair % 2 else ("recorded", "plain"):
                seconds[kind] = step_seconds(recorded if kind == "recorded" else workload)
            ratios.append(seconds["recorded"] / seconds["plain"])
            print(f"    pair {pair + 1} of {PAIRS}: {1e3 * seconds['plain']:.1f} ms plain, {1e3 * seconds['recorded']:.1f} ms recorded", flush=True)
        said = subprocess.run([tree.program, "summary", "--json", out], capture_output=True, text=True, check=True).stdout
        traces = list(out.glob("*.vram"))
        events, size = json.loads(said)["events"], sum(os.path.getsize(path) for path in traces)
        print(f"    {events} events in {len(traces)} traces of {size} bytes")
    return {"tf_step_overhead": paired_overhead(ratios), "trace_bytes_per_event": Measured(size / events)}
