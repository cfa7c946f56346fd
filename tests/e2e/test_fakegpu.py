"""The driver level from the hook to the summary, on the fake driver and the fake management library."""
import json
import subprocess

import pytest

CONTEXT = 518 << 20


@pytest.fixture(scope="session")
def fakegpu(build):
    folder = build / "tests/fakegpu"
    if not (folder / "libcuda.so.1").exists():
        pytest.skip("the fake driver is not built")
    return folder


@pytest.fixture
def record(vramscope, fakegpu, run, tmp_path):
    """record(way, scenario, ...) -> (what the program says it did, the summary)"""

    def call(*arguments, program="cuda_program", options=(), **environment):
        import os

        out = tmp_path / "out"
        env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state"), **environment}
        done = run([vramscope, "run", "--quiet", "-o", out, *options, "--", fakegpu / program, *arguments], env=env)
        summary = run([vramscope, "summary", "--json", out])
        return json.loads(done.stdout), json.loads(summary.stdout)

    return call


def total(truth, key, kinds=None):
    return sum(counts[key] for kind, counts in truth.items() if kinds is None or kind in kinds)


@pytest.mark.parametrize("way, program", [("direct", "cuda_program_direct"), ("dlsym", "cuda_program"), ("proc", "cuda_program")])
@pytest.mark.parametrize("scenario", ["linear", "async"])
def test_driver_totals_are_the_programs_own(record, way, program, scenario):
    truth, summary = record(way, scenario, program=program)
    driver = summary["driver"]
    assert driver["allocs"] == total(truth, "allocs")
    assert driver["frees"] == total(truth, "frees")
    assert driver["end_bytes"] == total(truth, "end")
    owner = driver["by_owner"][program]
    assert owner["allocs"] == total(truth, "allocs")
    assert owner["end_bytes"] == total(truth, "end")
    assert list(driver["by_owner"]) == [program]
    assert summary["lost"] == 0


def test_what_the_driver_refuses_did_not_happen(record):
    truth, summary = record("proc", "failures", FAKEGPU_FAIL="cuMemAlloc_v2:3:2,cuMemFree_v2:2:999,cuMemFree_v2:5:999")
    driver = summary["driver"]
    assert truth["linear"]["refused"] == 1 and truth["linear"]["end"] == 2 << 20
    assert driver["peak_bytes"] == truth["linear"]["peak"]
    assert driver["end_bytes"] == truth["linear"]["end"]


def test_addresses_and_other_processes_memory_are_not_memory(record):
    truth, summary = record("dlsym", "virtual")
    assert summary["driver"]["end_bytes"] <= total(truth, "end", {"physical", "pinned"})
    assert summary["driver"]["peak_bytes"] <= total(truth, "peak", {"physical", "pinned"})


def test_threads_that_reuse_addresses(record):
    truth, summary = record("proc", "threads", "8", "3000", FAKEGPU_REUSE="1")
    assert summary["driver"]["allocs"] == summary["driver"]["frees"] == total(truth, "allocs")
    assert summary["driver"]["end_bytes"] == 0


def test_a_program_that_allocates_nothing_leaves_no_trace(vramscope, fakegpu, run, tmp_path):
    import os

    env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu)}
    run([vramscope, "run", "--quiet", "-o", tmp_path / "out", "--", fakegpu / "cuda_program", "dlsym", "nothing"], env=env)
    assert not list(tmp_path.glob("out/*.vram"))


def test_the_card_says_what_this_process_and_others_use(vramscope, fakegpu, run, tmp_path):
    """Another process holds 300 MiB, ours 64 MiB: each with a context, all of it on the card."""
    import os

    env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state")}
    other = subprocess.Popen([fakegpu / "cuda_program", "dlsym", "hold", "300"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    try:
        assert other.stdout.readline() == b"holding\n"
        ours = ["sh", "-c", f"sleep 1.5 | {fakegpu}/cuda_program dlsym hold 64"]
        run([vramscope, "run", "--quiet", "-o", tmp_path / "out", "--", *ours], env=env)
    finally:
        other.communicate(b"")
    summary = json.loads(run([vramscope, "summary", "--json", tmp_path / "out"]).stdout)
    [device] = summary["device"]
    assert device["samples"] >= 2
    assert device["peak_process_bytes"] == CONTEXT + (64 << 20)
    assert device["peak_used_bytes"] >= 2 * CONTEXT + (364 << 20)
