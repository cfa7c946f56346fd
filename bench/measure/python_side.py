"""What reading structure costs: tracing and step time of a transformer with the hooks of the Python side and without."""
import json
import os
import subprocess
import tempfile

from measure.tree import ROOT, Measured

NAMES = ["tf_structure_tracing", "tf_structure_step"]


def measure(tree):
    environment = {**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        command = [tree.program, "run", "--quiet", "-o", folder, "--", tree.python, ROOT / "bench/overhead/python_side.py"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    said = json.loads(done.stdout.splitlines()[-1])
    print(f"    {said['tracing']['plain_s']:.2f} s to trace, {1e3 * said['step']['plain_s']:.1f} ms a step")
    return {name: Measured(part["percent"], *part["interval_percent"]) for name, part in zip(NAMES, (said["tracing"], said["step"]))}
