"""Processor time of a first step, which traces a transformer, with and without recording."""
import json
import os
import subprocess
import tempfile

from measure.tree import ROOT, Measured

NAMES = ["tf_first_step_overhead", "tf_first_fit_overhead"]


def measure_one(tree, *options):
    environment = {**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT / "python")}
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        command = [tree.program, "run", "--quiet", "-o", folder, "--", tree.python, ROOT / "bench/overhead/first_step.py", *options]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    said = json.loads(done.stdout.splitlines()[-1])
    print(f"    {said['plain_s']:.2f} s plain, {said['recorded_s']:.2f} s recorded")
    return Measured(said["overhead_percent"], *said["overhead_interval_percent"])


def measure(tree):
    return {"tf_first_step_overhead": measure_one(tree), "tf_first_fit_overhead": measure_one(tree, "--fit")}
