"""Cost of a Python stack, the size of a trace with stacks, and how soon it is ready.

VRAMSCOPE_BENCH_ALLOCATIONS=10000000 for the long version."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure.tree import ROOT, Measured

NAMES = ["python_stack_ns", "stack_trace_bytes_per_event", "stack_trace_ready_s"]

# A million allocations (and frees) from a hundred places in the program, sizes and lifetimes mixed.
PROGRAM = """
import random, sys, time
import torch
torch.set_num_threads(1)
numbers = random.Random(1)
space = {"torch": torch}
for i in range(100):
    exec(compile("def make_%d(n, depth):\\n    if depth: return make_%d(n, depth - 1)\\n    return torch.empty(n)\\n" % (i, i), "place_%d.py" % i, "exec"), space)
places = [(space["make_%d" % i], numbers.randrange(1, 20), numbers.choice((64, 256, 1000, 4096))) for i in range(100)]
held = [None] * 64
for i in range(int(sys.argv[1])):
    make, depth, size = places[i * 7 % 100]
    held[i * 13 % 64] = make(size, depth)
print(time.time())
"""


def stack_ns(tree):
    done = subprocess.run([sys.executable, ROOT / "tests/stacks/compare.py", tree.build / "tests/libstack_probe.so", "speed"],
                          capture_output=True, text=True, check=True)
    return float(re.match(r"(\d+) ns", done.stdout).group(1))


def torch_python():
    python = Path(os.environ.get("VRAMSCOPE_PYTHON_TORCH", ROOT / ".venv-torch/bin/python"))
    return python if python.exists() and os.environ.get("TORCH") != "0" else None


def measure(tree):
    allocations = int(os.environ.get("VRAMSCOPE_BENCH_ALLOCATIONS", "1000000"))
    results = {"python_stack_ns": Measured(min(stack_ns(tree) for _ in range(3)))}
    python = torch_python()
    if python is None:
        print("    TORCH=0 or no PyTorch: the size of a trace with stacks is not measured")
        return results
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        run = [tree.program, "run", "--quiet", "--stacks=both", "-o", Path(folder) / "out", "--", python, program, allocations]
        done = subprocess.run([str(part) for part in run], check=True, capture_output=True, text=True)
        ready = time.time() - float(done.stdout.split()[-1])  # with the end of the program itself
        traces = list((Path(folder) / "out").glob("*.vram"))
        summary = json.loads(subprocess.check_output([tree.program, "summary", "--json", traces[0]]))
        size = traces[0].stat().st_size
        print(f"    {summary['events']} events in {size} bytes, {summary['lost']} lost")
        results["stack_trace_bytes_per_event"] = Measured(size / summary["events"])
        results["stack_trace_ready_s"] = Measured(ready)
    return results
