"""On a real GPU: what was recorded of PyTorch equals torch.cuda.memory_stats(), for each of its allocators."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tensorflow"))
from tensorflow_support import Recording, replay  # noqa: E402

pytestmark = pytest.mark.gpu
PYTHON = os.environ.get("PYTHON_GPU_TORCH", os.environ.get("PYTHON_GPU", sys.executable))
POOL = "pytorch_cuda_0"


@pytest.fixture
def record(vramscope, tmp_path):
    def call(**env):
        folder = tmp_path / "out"
        done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", "--", PYTHON, HERE / "torch_training.py"],
                              env={**os.environ, **env}, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return Recording(vramscope, folder, done.stdout)

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
    recording = record(PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    events = up_to_end(recording.events())
    peak = now = 0
    live = {}
    for event in events:
        if event["event"] == "alloc" and "mempool" in event["pool"]:
            live[event["address"]] = event["granted"]
            now += event["granted"]
            peak = max(peak, now)
        elif event["event"] == "free" and event["address"] in live and "mempool" in event.get("pool", ""):
            now -= live.pop(event["address"])
    assert peak > 0
    assert recording.said["current_bytes"] in (None, now) or abs(recording.said["current_bytes"] - now) <= 512 * len(live)
