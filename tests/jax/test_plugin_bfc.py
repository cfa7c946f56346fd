"""What is recorded of the allocator inside JAX's CUDA plugins equals the allocator's own statistics, without a GPU."""
import os
import shutil
import subprocess

import plugin_symbols
import pytest
from tensorflow_support import Recording, replay

VERSIONS = ["0.4.30", "0.6.2", "0.8.0", "0.11.2", "0.12.0.1"]
POOL = "GPU_0_bfc"
OPERATIONS = 20_000


@pytest.fixture
def record(vramscope, build, run, tmp_path):
    """record(plugin, symbols) -> Recording of a program that drives the allocator in `plugin`; `symbols` is its unstripped twin."""

    def call(plugin, symbols=None, threads=1):
        folder = tmp_path / "out"
        program = [build / "tests/jax/plugin_bfc", plugin, *plugin_symbols.arguments(symbols or plugin), OPERATIONS, threads]
        done = run([vramscope, "run", "-o", folder, "--quiet", "--", *program],
                   env={**os.environ, "LD_LIBRARY_PATH": str(build / "tests/fakegpu"), "FAKEGPU_MEMORY": str(8 << 30)})
        recording = Recording(vramscope, folder, done.stdout)
        recording.stderr = done.stderr
        return recording

    return call


def found_by(events):
    return {event["value"] for event in events if event["event"] == "setting" and event["key"] == "jax.allocator_found_by"}


def summary_line(recording):
    """What `summary` says about JAX."""
    text = subprocess.check_output([recording.vramscope, "summary", recording.trace], text=True)
    return next((line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith("  JAX ")), None)


def assert_equal(recording):
    said, events = recording.said, recording.events()
    counted = replay(events, POOL)
    assert said["allocs"] > OPERATIONS / 3, said
    assert counted == {"allocs": said["allocs"], "peak_bytes": said["peak_bytes"], "end_bytes": said["current_bytes"],
                       "largest_alloc_bytes": said["largest_bytes"]}
    pool = recording.pool(POOL)
    assert (pool["framework"], pool["device"], pool["order_exact"]) == ("jax", 0, True), pool
    # All of the memory that the driver gave is the pool's, because the program takes no other.
    given = [event for event in events if event["event"] == "alloc" and event["pool"].startswith("CUDA:0")]
    regions = [event for event in events if event["event"] == "region" and event["pool"] == POOL]
    assert {(e["address"], e["granted"]) for e in given} == {(e["address"], e["bytes"]) for e in regions}
    # The caller of the first one could do without the block.
    refused = [(e["requested"], e["final"]) for e in events if e["event"] == "oom" and e["pool"] == POOL]
    assert refused == [(said["limit_bytes"], False), (said["limit_bytes"] + 1, True)]
    return events


@pytest.mark.parametrize("version", VERSIONS)
def test_allocations_current_and_peak(version, plugin_of, record):
    recording = record(plugin_of(version))
    assert found_by(assert_equal(recording)) == {"symbols"}
    assert summary_line(recording) == "the allocator of the plugin was found by its symbols"


@pytest.mark.parametrize("version", VERSIONS)
def test_plugin_without_symbols(version, plugin_of, record, tmp_path):
    stripped = tmp_path / "xla_cuda_plugin.so"
    subprocess.run(["strip", "--strip-all", "-o", stripped, plugin_of(version)], check=True)
    recording = record(stripped, plugin_of(version))
    assert found_by(assert_equal(recording)) == {"type information"}
    assert summary_line(recording) == "the allocator of the plugin was found by its type information"


def test_threads(plugin_of, record):
    """Hooks outside of the allocator's lock: the peak may be too low if calls overlap, and then it is not called exact."""
    recording = record(plugin_of("0.4.30"), threads=4)
    said, counted = recording.said, replay(recording.events(), POOL)
    assert (counted["allocs"], counted["end_bytes"]) == (said["allocs"], said["current_bytes"])
    assert counted["peak_bytes"] <= said["peak_bytes"]
    if recording.pool(POOL)["order_exact"]:
        assert counted["peak_bytes"] == said["peak_bytes"]


def test_unknown_class_leaves_the_driver_level(plugin_of, record, tmp_path):
    """A plugin whose class is called differently: the program runs as before, and the recording says what is missing."""
    changed = tmp_path / "xla_cuda_plugin.so"
    shutil.copy(plugin_of("0.4.30"), changed)
    content = changed.read_bytes()
    assert content.count(b"N3tsl12BFCAllocatorE") >= 2
    changed.write_bytes(content.replace(b"N3tsl12BFCAllocatorE", b"N3tsl12XYZAllocatorE"))
    recording = record(changed, plugin_of("0.4.30"))
    events = recording.events()
    assert found_by(events) == {"none"}
    assert "was not found" in recording.stderr
    assert summary_line(recording) == "the plugin has no known allocator: arrays are recorded, temporaries of programs are not"
    assert not [event for event in events if event.get("pool") == POOL]
    assert [event for event in events if event["event"] == "alloc" and event["pool"].startswith("CUDA:0")]
