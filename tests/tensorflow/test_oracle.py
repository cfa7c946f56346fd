"""What was recorded equals what TensorFlow counted, to the byte."""
import json
import subprocess
from pathlib import Path

import pytest

from tensorflow_support import HERE, replay

WORKLOAD = HERE / "workload.py"
CPU_POOL = "bfc_cpu_allocator_for_gpu"


def up_to_check(events, name):
    at = next(i for i, e in enumerate(events) if e["event"] == "mark" and e["kind"] == "check" and e["name"] == name)
    return events[:at]


def own_counters(events, pool):
    """The allocator's own statistics at the last check."""
    stats = [e for e in events if e["event"] == "stats" and e["pool"] == pool][-1]
    return {"allocs": stats["allocs"], "peak_bytes": stats["peak"], "end_bytes": stats["in_use"],
            "largest_alloc_bytes": stats["largest"]}


@pytest.mark.parametrize("program", ["fit", "eager", "function"])
def test_counts_equal_tensorflows_own(record, tensorflow, program):
    _, python = tensorflow
    recording = record([python, WORKLOAD, program])
    events = recording.events()
    counted = replay(up_to_check(events, "end"), CPU_POOL)
    assert counted == own_counters(events, CPU_POOL)
    assert counted["end_bytes"] == recording.said["current"]
    assert counted["peak_bytes"] == recording.said["peak"]
    pool = recording.pool(CPU_POOL)
    assert pool["peak_bytes"] == recording.said["peak"]
    assert pool["largest_alloc_bytes"] == counted["largest_alloc_bytes"]
    assert pool["framework"] == "tensorflow"
    assert pool["region_bytes_peak"] >= pool["peak_bytes"]
    summary = recording.summary()
    assert summary["lost"] in (0, {}, []), summary["lost"]
    assert summary["process"]["exit_code"] == 0


@pytest.fixture(scope="module")
def bfc_threads(tensorflow, tmp_path_factory):
    """The native program, built against the headers of this TensorFlow."""
    version, python = tensorflow
    package = Path(subprocess.check_output(
        [python, "-c", "import importlib.util as u; print(u.find_spec('tensorflow').submodule_search_locations[0])"],
        text=True).strip())
    program = tmp_path_factory.mktemp("native") / f"bfc_threads_{version}"
    subprocess.run(["c++", "-std=c++17", "-O2", "-w", f"-I{package}/include", "-o", program, HERE / "bfc_threads.cpp",
                    f"-L{package}", "-l:libtensorflow_framework.so.2", f"-Wl,-rpath,{package}", "-pthread", "-ldl"], check=True)
    return program


def test_eight_native_threads(record, bfc_threads):
    recording = record([bfc_threads, "8", "50000"], env={"TF_CPP_MIN_LOG_LEVEL": "2"})
    events = recording.events()
    counted = replay(up_to_check(events, "end"), "native_bfc")
    pool = recording.pool("native_bfc")
    assert (pool["region_bytes_end"], pool["region_bytes_peak"]) == (recording.said.pop("pool_end"), recording.said.pop("pool_peak"))
    assert counted == recording.said
    assert counted["allocs"] == 400_000
    assert {key: pool[key] for key in counted} == counted
    assert recording.summary()["lost"] in (0, {}, [])


def profiled_allocations(python, logdir):
    """What TensorFlow's profiler wrote, by address, in order of time."""
    return subprocess.check_output([python, HERE / "read_xplane.py", logdir], text=True)


def test_names_and_shapes_equal_the_profilers(record, tensorflow, tmp_path):
    version, python = tensorflow
    recording = record([python, WORKLOAD, "profiled", tmp_path / "log"])
    theirs = {}
    for line in profiled_allocations(python, tmp_path / "log").splitlines():
        event = json.loads(line)
        if event["allocator"] == CPU_POOL:
            theirs.setdefault(event["address"], []).append(event)
    events = recording.events()
    first, last = (next(i for i, e in enumerate(events) if e.get("kind") == "check" and e["name"] == name)
                   for name in ("profiler on", "profiler off"))
    compared = 0
    ours = {}
    runs = {}
    for event in events[first:last]:
        if event["event"] == "alloc" and event["pool"] == CPU_POOL:
            ours.setdefault(event["address"], []).append(event)
    for address, allocations in ours.items():
        # The window of the profiler is a little wider at both ends: allocations of one address are compared from the point where
        # the two agree on their number.
        said = theirs.get(address, [])
        assert len(said) >= len(allocations), f"{address:#x}: the profiler saw {len(said)}, we {len(allocations)}"
        for mine, his in zip(allocations, said):
            assert mine["requested"] == his["requested_bytes"]
            assert mine["granted"] == his["allocation_bytes"]
            assert mine["op"] == his["tf_op"]
            assert mine["region"] == his["region_type"]
            assert mine["dtype"] == his["data_type"]
            # "[0]" for a block that has bytes is the profiler's word for an unknown shape.
            unknown = his["shape"] == "[0]" and his["requested_bytes"] > 0
            assert mine["shape"] == ("" if unknown else his["shape"])
            # The trace numbers the runs of functions; the profiler has the framework's random ids.
            assert runs.setdefault(his["id"], mine["step"]) == mine["step"]
            compared += 1
    assert len(set(runs.values())) == len(runs)
    assert compared > 500, f"TensorFlow {version}: only {compared} allocations compared"
    assert any(e["shape"] for e in events if e["event"] == "alloc")
