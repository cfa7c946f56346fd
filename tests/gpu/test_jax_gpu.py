"""On a real GPU: what was recorded of JAX equals device.memory_stats(), with and without preallocation."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorflow_support import Recording, replay

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "jax/models.py"

pytestmark = pytest.mark.gpu
PYTHON = os.environ.get("PYTHON_GPU_JAX", os.environ.get("PYTHON_GPU", sys.executable))
POOL = "GPU_0_bfc"


@pytest.fixture(scope="module", autouse=True)
def jax_on_a_gpu():
    done = subprocess.run([PYTHON, "-c", "import jax; assert jax.default_backend() == 'gpu', jax.default_backend()"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{PYTHON} has no JAX that uses the GPU: {done.stderr.strip().splitlines()[-1:]}")


@pytest.fixture
def record(vramscope, tmp_path):
    def call(program=MODELS, *arguments, **env):
        folder = tmp_path / "out"
        done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", "--", PYTHON, program, *arguments],
                              env={**os.environ, **env}, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return Recording(vramscope, folder, done.stdout)

    return call


def up_to_end(events):
    return events[:next(i for i, e in enumerate(events) if e["event"] == "mark" and e.get("name") == "end")]


def has(package):
    return subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True).returncode == 0


@pytest.mark.parametrize("preallocate", ["true", "false"])
@pytest.mark.parametrize("model", ["mlp", "transformer", "conv", "flax"])
def test_pool_equals_memory_stats(record, model, preallocate):
    if model == "flax" and not has("flax"):
        pytest.skip("flax is not installed for this Python")
    recording = record(MODELS, model, XLA_PYTHON_CLIENT_PREALLOCATE=preallocate)
    said, events = recording.said, up_to_end(recording.events())
    counted = replay(events, POOL)
    print(model, preallocate, counted, said)
    assert said["allocs"] and said["peak_bytes"]
    assert counted["allocs"] == said["allocs"]
    assert counted["end_bytes"] == said["current_bytes"]
    pool = recording.pool(POOL)
    if pool["order_exact"]:
        assert counted["peak_bytes"] == said["peak_bytes"]
    else:   # an allocation and a free overlapped: the peak is called a lower bound
        assert counted["peak_bytes"] <= said["peak_bytes"]
    assert counted["largest_alloc_bytes"] == said["largest_bytes"]
    found_by = {e["value"] for e in events if e["event"] == "setting" and e["key"] == "jax.allocator_found_by"}
    assert found_by == {"symbols"}
    # The driver's memory of the pool: all of it at once, or as it was needed.
    held = sum(e["bytes"] for e in events if e["event"] == "region" and e["pool"] == POOL)
    assert held == said["limit_bytes"] if preallocate == "true" else said["peak_bytes"] <= held < said["limit_bytes"]


def test_peak_is_exact_for_donated_training(record):
    """One thread computes, and nothing is freed while it allocates: no reason for a lower bound."""
    recording = record(MODELS, "mlp", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    assert replay(up_to_end(recording.events()), POOL)["peak_bytes"] == recording.said["peak_bytes"]


def test_ledger_shows_what_is_used_behind_preallocation(vramscope, record):
    recording = record(MODELS, "mlp", XLA_PYTHON_CLIENT_PREALLOCATE="true")
    ledger = json.loads(subprocess.check_output([vramscope, "ledger", "--json", recording.trace]))
    lines = {line["name"]: {part["name"]: part["value"] for part in line["parts"]} for line in ledger["lines"]}
    # The pool's memory is created and mapped in two calls of the driver; it is the pool's all the same.
    assert lines["driver level"]["pool regions"] == recording.said["limit_bytes"] and "JAX" not in lines["driver level"], ledger
    assert lines["pool regions"]["live blocks"] == recording.said["peak_bytes"]
    pool = recording.pool(POOL)
    assert pool["region_bytes_peak"] == recording.said["limit_bytes"]
    assert pool["peak_bytes"] < pool["region_bytes_peak"] / 10


@pytest.mark.parametrize("allocator", ["platform", "cuda_async"])
def test_other_allocators_are_recorded_by_the_driver_level(record, allocator):
    """Every array is a call of the driver then."""
    recording = record(MODELS, "mlp", XLA_PYTHON_CLIENT_ALLOCATOR=allocator)
    events = up_to_end(recording.events())
    # Six layers of parameters and twice as much state: more than a hundred MiB that only the driver handed out.
    taken = [e["granted"] for e in events if e["event"] == "alloc" and e["pool"].startswith("CUDA:0")]
    assert taken.count(4 << 20) >= 18, (len(taken), sorted(set(taken))[-5:])


@pytest.mark.parametrize("model", ["mlp", "transformer", "conv"])
def test_steps_and_categories(vramscope, record, model):
    recording = record(MODELS, model, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    marks = [e for e in recording.events() if e["event"] == "mark" and e["kind"] == "step"]
    assert len(marks) == 10, "one for each execution of the program that computes gradients"
    text = subprocess.check_output([vramscope, "peak", recording.trace, "--at", "steady", "--by", "category", "--rows", "0", "--json"], text=True)
    groups = {group["keys"][0]: group["bytes"] for group in json.loads(text)["groups"]}
    print(model, groups)
    assert groups.get("unknown", 0) <= 0.05 * sum(groups.values()), groups
    # Adam keeps two values for each parameter, and all are donated: there is no second copy. A block may be larger than its request.
    parameters = recording.said["parameter_bytes"]
    assert parameters <= groups["parameters"] <= 1.3 * parameters, (parameters, groups)
    assert 2 * parameters <= groups["optimizer state"] <= 2.6 * parameters, (parameters, groups)
    newest = {e["name"]: e for e in recording.events() if e["event"] == "tag"}
    tagged = {word: sum(e["bytes"] for e in newest.values() if e["category"] == word) for word in ("parameter", "optimizer_state")}
    assert tagged == {"parameter": parameters, "optimizer_state": 2 * parameters}
