"""On a real GPU: what was recorded equals what TensorFlow and the card say."""
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tensorflow_support import Recording, replay

TENSORFLOW_TESTS = Path(__file__).resolve().parent.parent / "tensorflow"

pytestmark = pytest.mark.gpu
PYTHON = os.environ.get("PYTHON_GPU", sys.executable)
POOL = "GPU_0_bfc"
DRIVER_POOL = "CUDA:0 device memory"
MIB = 1 << 20


@pytest.fixture
def record(vramscope, tmp_path):
    def call(program, **env):
        folder = tmp_path / "out"
        done = subprocess.run(
            [vramscope, "run", "-o", folder, "--quiet", "--", PYTHON, TENSORFLOW_TESTS / "workload.py", program],
            env={**os.environ, "TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2", **env},
            capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return Recording(vramscope, folder, done.stdout)

    return call


MODES = {"graph": ("fit", {}), "xla": ("fit", {"WORKLOAD_XLA": "1"}), "eager": ("eager", {}), "function": ("function", {})}


@pytest.mark.parametrize("mode", MODES)
def test_pool_equals_get_memory_info(record, mode):
    program, env = MODES[mode]
    recording = record(program, **env)
    events = recording.events()
    end = next(i for i, e in enumerate(events) if e["event"] == "mark" and e.get("name") == "end")
    counted = replay(events[:end], POOL)
    assert counted["peak_bytes"] == recording.said["peak"]
    assert counted["end_bytes"] == recording.said["current"]
    stats = [e for e in events if e["event"] == "stats" and e["pool"] == POOL][-1]
    assert counted["allocs"] == stats["allocs"]
    assert counted["largest_alloc_bytes"] == stats["largest"]
    pool = recording.pool(POOL)
    assert pool["device"] == 0
    assert pool["region_bytes_peak"] >= pool["peak_bytes"]


def driver_rounding(live):
    """Below 2 MiB allocations share 2 MiB slabs in steps of 512 bytes; from there on they are rounded up to 2 MiB."""
    small = sum((size + 511) // 512 * 512 for size in live if size < 2 * MIB)
    large = sum((size + 2 * MIB - 1) // (2 * MIB) * 2 * MIB for size in live if size >= 2 * MIB)
    return (small + 2 * MIB - 1) // (2 * MIB) * 2 * MIB + large - sum(live)


@pytest.mark.parametrize("mode", MODES)
def test_the_ledger_closes(record, mode):
    program, env = MODES[mode]
    events = record(program, **env).events()
    live, context, residual = {}, 0, None
    for event in events:
        kind = event["event"]
        if kind == "context":
            context += event["bytes"]
        elif kind == "alloc" and event["pool"] == DRIVER_POOL:
            live[event["address"]] = event["granted"]
        elif kind == "free" and event["pool"] == DRIVER_POOL:
            live.pop(event["address"], None)
        elif kind == "device_sample" and event["process"] and event["process"] < 1 << 60 and context:
            driver = sum(live.values())
            residual = event["process"] - driver - driver_rounding(live.values()) - context
    assert context > 100 * MIB, "the context was measured on its own"
    assert residual is not None, "the card knows this process"
    assert abs(residual) <= 64 * MIB, f"residual {residual / MIB:.1f} MiB"


@pytest.mark.parametrize("mode", MODES)
def test_the_ledger_is_never_negative_between_samples(vramscope, record, mode):
    """At random instants, most of them far from a sample. The driver rounds each allocation to 2 MiB at most."""
    program, env = MODES[mode]
    recording = record(program, **env)
    events = recording.events()
    start = next(i for i, event in enumerate(events) if event["event"] == "context")
    allocations = sum(event["event"] == "alloc" and event["pool"] == DRIVER_POOL for event in events)
    for moment in random.Random(1).sample(range(start, len(events)), 40):
        ledger = json.loads(subprocess.check_output([vramscope, "ledger", "--json", "--at", f"moment:{moment}", recording.trace]))
        process, = [line for line in ledger["lines"] if line["name"] == "this process"]
        if process["residual"] is not None:
            assert -2 * MIB * allocations <= process["residual"] <= ledger["card"] // 100, (moment, ledger)
            assert process["residual"] >= 0 or "negative because" in process["note"], (moment, process)


def test_cuda_malloc_async_is_seen_at_the_driver_level(record):
    recording = record("function", TF_GPU_ALLOCATOR="cuda_malloc_async")
    summary = recording.summary()
    assert all(p["name"] != POOL for p in summary["pools"])
    assert summary["driver"]["allocs"] > 100
    events = recording.events()
    assert any(e["event"] == "region" for e in events), "the pool's reserved bytes"


def test_summary_json_names_owners(record):
    summary = record("fit").summary()
    assert any("TensorFlow" in owner for owner in summary["driver"]["by_owner"])
    assert summary["device"], json.dumps(summary["device"])
