"""Step time of a transformer with and without recording, and the size of its trace."""
import json
import os
import subprocess
import tempfile
from pathlib import Path

from measure.tree import ROOT, Measured

NAMES = ["tf_step_overhead", "tf_eager_step_overhead", "trace_bytes_per_event"]


def train(tree, folder, *options):
    environment = {**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT / "python")}
    workload = [tree.python, ROOT / "bench/overhead/in_process.py", "--width", "128", "--blocks", "4", *options]
    command = [tree.program, "run", "--quiet", "-o", folder, "--", *workload]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def measure(tree):
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        # Blocks of steps take turns inside one process: two processes differ by more than what is measured.
        said = json.loads(train(tree, folder, "--pairs", "60", "--steps", "5").splitlines()[-1])
        print(f"    {said['plain_ms']:.1f} ms a step, {said['events_per_step']} events a step")
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        eager = json.loads(train(tree, folder, "--pairs", "30", "--steps", "2", "--eager").splitlines()[-1])
        print(f"    {eager['plain_ms']:.1f} ms a step in eager mode, {eager['events_per_step']} events a step")
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        train(tree, folder, "--pairs", "0", "--steps", "300")
        summary = subprocess.run([tree.program, "summary", "--json", folder], capture_output=True, text=True, check=True).stdout
        size = sum(os.path.getsize(path) for path in Path(folder).glob("*.vram"))
        events = json.loads(summary)["events"]
        print(f"    {events} events in {size} bytes")
    return {"tf_step_overhead": Measured(said["overhead_percent"], *said["overhead_interval_percent"]),
            "tf_eager_step_overhead": Measured(eager["overhead_percent"], *eager["overhead_interval_percent"]),
            "trace_bytes_per_event": Measured(size / events)}
