"""Cost of reading the counters from Python."""
import json
import os
import subprocess

from measure.tree import ROOT, Measured

NAMES = ["memory_info_us", "memory_info_recorded_us"]

READ = """
import json, time
import tensorflow, vramscope
vramscope.memory_info("CPU:0")
best = 1e9
for _ in range(20):
    began = time.perf_counter()
    for _ in range(2000):
        vramscope.memory_info("CPU:0")
    best = min(best, (time.perf_counter() - began) / 2000)
print(json.dumps(best * 1e6))
"""


def read_us(tree, environment):
    environment = {**environment, "PYTHONPATH": str(ROOT / "python"), "VRAMSCOPE_BUILD": str(tree.build), "CUDA_VISIBLE_DEVICES": "",
                   "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([str(tree.python), "-c", READ], capture_output=True, text=True, check=True, env=environment)
    return Measured(json.loads(done.stdout.splitlines()[-1]))


def measure(tree):
    with tree.preloaded() as recorded:
        return {"memory_info_us": read_us(tree, dict(os.environ)), "memory_info_recorded_us": read_us(tree, recorded)}
