"""Step time of a transformer with the op bytes_in_use inside and without."""
import json
import os
import subprocess

from measure.tree import ROOT, Measured

NAMES = ["tf_op_in_step"]


def measure(tree):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CUDA_VISIBLE_DEVICES": ""}
    command = [tree.python, ROOT / "bench/overhead/op_in_step.py", "--pairs", "40", "--steps", "5", "--width", "128", "--blocks", "4"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    said = json.loads(done.stdout.splitlines()[-1])
    print(f"    {said['plain_ms']:.1f} ms a step; get_memory_info from Python beside it: {said['get_memory_info']['overhead_percent']} %")
    return {"tf_op_in_step": Measured(said["op"]["overhead_percent"], *said["op"]["interval_percent"])}
