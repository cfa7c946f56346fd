"""On a real GPU: what was recorded of PyTorch equals torch.cuda.memory_stats(), for each of its allocators."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorflow_support import Recording, replay

HERE = Path(__file__).resolve().parent

pytestmark = pytest.mark.gpu
PYTHON = os.environ.get("PYTHON_GPU_TORCH", os.environ.get("PYTHON_GPU", sys.executable))
POOL = "pytorch_cuda_0"


@pytest.fixture
def record(vramscope, tmp_path):
    def call(program=HERE / "torch_training.py", *arguments, options=(), **env):
        folder = tmp_path / "out"
        done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", *options, "--", PYTHON, program, *arguments],
                              env={**os.environ, **env}, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return Recording(vramscope, folder, done.stdout if "{" in done.stdout else "{}")

    return call


def up_to_end(events):
    return events[:next(i for i, e in enumerate(events) if e["event"] == "mark" and e.get("name") == "end")]


def held_by_driver(events):
    """Bytes that PyTorch holds from the driver, now and at most: its segments are direct allocations of the driver level."""
    live, now, peak = {}, 0, 0
    for event in events:
        if event["event"] == "alloc" and event["pool"].startswith("CUDA:0") and event.get("owner") == "PyTorch":
            live[event["pool"], event["address"]] = event["granted"]
            now += event["granted"]
            peak = max(peak, now)
        elif event["event"] == "free" and (event.get("pool"), event["address"]) in live:
            now -= live.pop((event["pool"], event["address"]))
    return now, peak


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_caching_allocator(record, settings):
    recording = record(**({"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {}))
    counted = replay(up_to_end(recording.events()), POOL)
    said = recording.said
    assert counted["allocs"] == said["allocs"]
    assert counted["peak_bytes"] == said["peak_bytes"]
    assert counted["end_bytes"] == said["current_bytes"]


def test_reserved_bytes_equal_the_segments_of_the_driver_level(record):
    recording = record()
    now, peak = held_by_driver(up_to_end(recording.events()))
    assert (now, peak) == (recording.said["reserved_current"], recording.said["reserved_peak"]), json.dumps(recording.said)


def test_stream_ordered_allocator(record):
    """cudaMallocAsync: PyTorch's counters are those of the driver's pool, which counts the bytes that were asked for, not the 512 of its grid."""
    recording = record(PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    live, now, peak = {}, 0, 0
    for event in up_to_end(recording.events()):
        if event["event"] == "alloc" and "mempool" in event["pool"]:
            live[event["address"]] = event["granted"]
            now += event["granted"]
            peak = max(peak, now)
        elif event["event"] == "free" and event["address"] in live and "mempool" in event.get("pool", ""):
            now -= live.pop(event["address"])
    said = recording.said
    assert peak > 0 and said["peak_bytes"] and said["current_bytes"]
    assert (now, peak) == (said["current_bytes"], said["peak_bytes"]), (len(live), said)


def test_libraries_by_owner_in_the_ledger(vramscope, record):
    recording = record(HERE / "torch_libraries.py", options=["--stacks=both"])
    direct = [e for e in recording.events() if e["event"] == "alloc" and e["pool"].startswith("CUDA:0") and e.get("owner") not in (None, "", "PyTorch")]
    owners = {e["owner"] for e in direct}
    assert "NCCL" in owners, owners
    assert all(e["stack"] for e in direct if e["owner"] == "NCCL"), "a native stack says who asked for it"
    text = subprocess.check_output([vramscope, "ledger", recording.trace], text=True)
    assert "NCCL" in text, text


@pytest.mark.parametrize("model", ["transformer", "compiled", "resnet", "lightning"])
def test_category_and_layer_are_known_at_the_peak(vramscope, record, model):
    if model == "lightning" and subprocess.run([PYTHON, "-c", "import lightning"], capture_output=True).returncode:
        pytest.skip("Lightning is not installed for this Python")
    recording = record(HERE.parent / "torch/models.py", model, "cuda")
    text = subprocess.check_output([vramscope, "peak", recording.trace, "--by", "category,layer", "--phase", "all", "--rows", "0", "--json"], text=True)
    groups = [(*group["keys"], group["bytes"]) for group in json.loads(text)["groups"]]
    unknown = [group for group in groups if group[0] == "unknown" or not group[1]]
    assert sum(size for *_, size in unknown) <= 0.05 * sum(size for *_, size in groups), unknown[:5]
