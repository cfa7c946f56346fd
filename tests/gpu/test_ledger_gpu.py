"""On a real GPU: the ledger's residual at random instants of five runs, most of them far from a sample of the card."""
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tensorflow"))
from tensorflow_support import Recording  # noqa: E402

pytestmark = pytest.mark.gpu
TENSORFLOW = os.environ.get("PYTHON_GPU", sys.executable)
TORCH = os.environ.get("PYTHON_GPU_TORCH", TENSORFLOW)
GRANULARITY = 2 << 20       # the driver rounds an allocation up to this at most
INSTANTS = 200
WORKLOAD = HERE.parent / "tensorflow/workload.py"
RUNS = {"tensorflow graph": (TENSORFLOW, [WORKLOAD, "fit"], {}), "tensorflow xla": (TENSORFLOW, [WORKLOAD, "fit"], {"WORKLOAD_XLA": "1"}),
        "tensorflow eager": (TENSORFLOW, [WORKLOAD, "eager"], {}), "pytorch": (TORCH, [HERE / "torch_training.py"], {}),
        "pytorch with segments that grow": (TORCH, [HERE / "torch_training.py"], {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})}


@pytest.fixture
def record(vramscope, tmp_path):
    def call(name):
        python, command, env = RUNS[name]
        done = subprocess.run([vramscope, "run", "-o", tmp_path / "out", "--quiet", "--", python, *command],
                              env={**os.environ, "TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2", **env},
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return Recording(vramscope, tmp_path / "out", done.stdout)

    return call


def live_driver_allocations(events):
    """How many there are before each event, counted by hand."""
    live, counts = set(), []
    for event in events:
        counts.append(len(live))
        if event.get("pool", "").startswith("CUDA:0"):
            if event["event"] == "alloc":
                live.add((event["pool"], event["address"]))
            elif event["event"] == "free":
                live.discard((event["pool"], event["address"]))
    return counts


@pytest.mark.parametrize("run", RUNS)
def test_the_residual_is_small_and_never_negative(vramscope, record, run):
    recording = record(run)
    events = recording.events()
    counts = live_driver_allocations(events)
    start = next(i for i, event in enumerate(events) if event["event"] == "context")
    judged, lowest, highest = 0, 0, 0
    for moment in sorted(random.Random(run).sample(range(start, len(events)), min(INSTANTS, len(events) - start))):
        ledger = json.loads(subprocess.check_output([vramscope, "ledger", "--json", "--at", f"moment:{moment}", recording.trace]))
        process, = [line for line in ledger["lines"] if line["name"] == "this process"]
        residual = process["residual"]
        if residual is None:
            continue
        judged, lowest, highest = judged + 1, min(lowest, residual), max(highest, residual)
        assert residual >= -GRANULARITY * counts[moment], (moment, counts[moment], process)
        assert residual >= 0 or "negative because" in process["note"], (moment, process)
        assert residual <= ledger["card"] // 100, (moment, process)
    print(f"{run}: {judged} instants, residual from {lowest / 2 ** 20:.1f} to {highest / 2 ** 20:.1f} MiB")
    assert judged >= 0.8 * INSTANTS, f"only {judged} instants have a residual"
