"""On a real GPU: a snapshot of PyTorch, imported, has the peak of torch.cuda.memory_stats(); our export of a recorded run is one that PyTorch reads."""
import json
import os
import pickle
import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu
PYTHON = os.environ.get("PYTHON_GPU_TORCH", os.environ.get("PYTHON_GPU", sys.executable))

PROGRAM = """
import json, sys
import torch
torch.cuda.memory._record_memory_history()
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)], torch.nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(8):
    x = torch.randn(64 * (1 + step % 3), 1024, device="cuda")
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
kept = torch.empty(37_000_001, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
torch.cuda.memory._dump_snapshot(sys.argv[1])
print(json.dumps({key: stats[key] for key in ("allocated_bytes.all.peak", "allocated_bytes.all.current", "requested_bytes.all.peak",
                                              "reserved_bytes.all.peak", "allocation.all.allocated")}))
"""


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_snapshot_has_the_figures_of_memory_stats(vramscope, tmp_path, settings):
    file = tmp_path / "snapshot.pickle"
    done = subprocess.run([PYTHON, "-c", PROGRAM, file], capture_output=True, text=True, env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": settings})
    assert done.returncode == 0, done.stderr
    truth = json.loads(done.stdout.splitlines()[-1])
    answer = json.loads(subprocess.run([vramscope, "summary", file, "--json"], capture_output=True, text=True, check=True).stdout)
    place = next(p for p in answer["overview"]["places"] if p["name"] == "GPU 0")
    assert place["peak"] == truth["allocated_bytes.all.peak"]
    assert place["end"] == truth["allocated_bytes.all.current"]
    assert place["allocs"] == truth["allocation.all.allocated"]
    assert answer["pools"][0]["peak_requested_bytes"] == truth["requested_bytes.all.peak"]
    assert place["regions_peak"] == truth["reserved_bytes.all.peak"]


def test_a_recorded_run_as_a_snapshot(vramscope, tmp_path):
    run, file = tmp_path / "run", tmp_path / "export.pickle"
    done = subprocess.run([vramscope, "run", "-q", "-o", run, "--", PYTHON, "-c", PROGRAM, tmp_path / "own.pickle"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    truth = json.loads(done.stdout.splitlines()[-1])
    subprocess.run([vramscope, "export", run, "--to", "torch-snapshot", "-o", file], check=True)
    live = peak = 0
    for entry in pickle.loads(file.read_bytes())["device_traces"][0]:
        live += {"alloc": entry["size"], "free_completed": -entry["size"]}.get(entry["action"], 0)
        peak = max(peak, live)
    assert peak == truth["allocated_bytes.all.peak"]
