"""The driver level from the hook to the summary, on the fake driver and the fake management library."""
import json
import os
import subprocess
import sys

import pytest

CONTEXT = 518 << 20


@pytest.fixture
def record(vramscope, fakegpu, run, tmp_path):
    """record(way, scenario, ...) -> (what the program says it did, the summary)"""

    def call(*arguments, program="cuda_program", options=(), **environment):
        out = tmp_path / "out"
        env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state"), **environment}
        done = run([vramscope, "run", "--quiet", "-o", out, *options, "--", fakegpu / program, *arguments], env=env)
        summary = run([vramscope, "summary", "--json", out])
        return json.loads(done.stdout), json.loads(summary.stdout)

    return call


def device_samples(vramscope, folder):
    """How many samples of a device the trace holds so far."""
    done = subprocess.run([vramscope, "summary", "--json", folder], capture_output=True, text=True, timeout=600)
    return sum(device["samples"] for device in json.loads(done.stdout).get("device", [])) if done.returncode == 0 else 0


@pytest.fixture
def record_holding(vramscope, run, wait_until, tmp_path):
    """record_holding([command...], env) -> the summary. The command says "holding" and waits for the end of its input, which comes once
    the device was sampled at least twice after that."""

    def call(command, env, prefix=()):
        out = tmp_path / "out"
        words = [*prefix, vramscope, "run", "--quiet", "-o", out, "--", *command]
        process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        try:
            assert process.stdout.readline() == b"holding\n"
            before = device_samples(vramscope, out)
            wait_until(lambda: device_samples(vramscope, out) >= before + 2, "the device is sampled")
        finally:
            process.communicate(b"", timeout=600)
        assert process.returncode == 0
        return json.loads(run([vramscope, "summary", "--json", out]).stdout)

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
    assert (driver["allocs"], driver["frees"]) == (truth["linear"]["allocs"], truth["linear"]["frees"])
    assert driver["by_owner"]["cuda_program"]["allocs"] == truth["linear"]["allocs"]
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
    env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu)}
    run([vramscope, "run", "--quiet", "-o", tmp_path / "out", "--", fakegpu / "cuda_program", "dlsym", "nothing"], env=env)
    assert not list(tmp_path.glob("out/*.vram"))


def test_the_card_says_what_this_process_and_others_use(fakegpu, record_holding, tmp_path):
    """Another process holds 300 MiB, ours 64 MiB: each with a context, all of it on the card."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state")}
    other = subprocess.Popen([fakegpu / "cuda_program", "dlsym", "hold", "300"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    try:
        assert other.stdout.readline() == b"holding\n"
        [device] = record_holding([fakegpu / "cuda_program", "dlsym", "hold", "64"], env)["device"]
    finally:
        other.communicate(b"")
    assert device["samples"] >= 2
    assert device["peak_process_bytes"] == CONTEXT + (64 << 20)
    assert device["peak_used_bytes"] >= 2 * CONTEXT + (364 << 20)


@pytest.fixture(scope="module")
def container():
    """Words before a command that make it the first process of a PID namespace of its own."""
    for prefix in (["unshare", "--pid", "--fork", "--mount-proc"], ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]):
        if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
            return prefix
    pytest.skip("no PID namespaces here: neither root nor unprivileged user namespaces")


def container_environment(fakegpu, tmp_path):
    """In a container NVML speaks of other process ids than we know."""
    return {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state"), "FAKEGPU_NVML_PID_OFFSET": "70000"}


def test_in_a_container_the_only_new_process_is_ours(fakegpu, record_holding, tmp_path, container):
    program = [fakegpu / "cuda_program", "dlsym", "hold", "64"]
    [device] = record_holding(program, container_environment(fakegpu, tmp_path), container)["device"]
    assert device["peak_process_bytes"] == CONTEXT + (64 << 20)


def test_in_a_container_two_processes_cannot_be_told_apart(fakegpu, record_holding, tmp_path, container):
    """The other one is on the device from before our first context until after our end."""
    script = f"""
        mkfifo {tmp_path}/output {tmp_path}/input
        LD_PRELOAD= {fakegpu}/cuda_program dlsym hold 300 < {tmp_path}/input > {tmp_path}/output &
        exec 3> {tmp_path}/input
        read holding < {tmp_path}/output
        {fakegpu}/cuda_program dlsym hold 64 || exit
        exec 3>&-
        wait
    """
    [device] = record_holding(["sh", "-c", script], container_environment(fakegpu, tmp_path), container)["device"]
    assert device["samples"] >= 2 and device["peak_process_bytes"] is None


def test_as_the_first_process_of_a_container(vramscope, tmp_path, container):
    def code(script):
        return subprocess.run([*container, vramscope, "run", "-q", "-o", tmp_path / "out", "--", "sh", "-c", script],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)

    assert code("exit 5").returncode == 5
    assert code("kill -TERM $$").returncode == 128 + 15, "the first process of a namespace cannot die of a signal"
    # Orphans come to the first process; as zombies they would stay for ever.
    orphans = tmp_path / "orphans"
    orphan = f"sh -c 'echo $$ >> {orphans}' &"
    done = code(f"""
        ({orphan} {orphan})
        until [ $(wc -l < {orphans}) = 2 ]; do sleep 0.02; done 2>/dev/null
        for pid in $(cat {orphans}); do while [ -e /proc/$pid ]; do sleep 0.02; done; done
    """)
    assert done.returncode == 0


ALLOCATE_THEN_EXECUTE = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
for code in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
             cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(11 << 20))):
    assert code == 0
os.execv("/bin/sh", ["sh", "-c", sys.argv[1]])
"""


def test_a_program_executed_later_is_recorded_too(vramscope, fakegpu, run, tmp_path):
    """The first one's spool is gone by the time that the second one, with the same number, makes its own under the same name."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state")}
    out = tmp_path / "out"
    later = f"until grep complete {out}/*.manifest.json; do sleep 0.02; done > /dev/null; exec {fakegpu}/cuda_program dlsym linear"
    run([vramscope, "run", "--quiet", "-o", out, "--", sys.executable, "-c", ALLOCATE_THEN_EXECUTE, later], env=env)
    both = [json.loads(run([vramscope, "summary", "--json", trace]).stdout) for trace in out.glob("*.vram")]
    assert len(both) == 2 and len({each["process"]["pid"] for each in both}) == 1
    assert sorted(each["driver"]["peak_bytes"] == 11 << 20 for each in both) == [False, True]


def test_a_limit_on_file_sizes_harms_nobody(vramscope, fakegpu, tmp_path):
    env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu)}
    for blocks in ("20", "0"):
        done = subprocess.run(["sh", "-c", f'ulimit -f {blocks}; exec "$0" run -o "$1" -- "$2" dlsym linear', vramscope, tmp_path / blocks,
                               fakegpu / "cuda_program"], env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0 and json.loads(done.stdout), done.stderr
        assert "vramscope: " in done.stderr


def test_the_ledger_closes_to_the_byte(vramscope, fakegpu, run, record_holding, tmp_path):
    """Linear memory large and small, pools, physical memory, managed and pinned memory, graphs: what the card says of the process is the
    driver level, its rounding and the context."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state")}
    record_holding([fakegpu / "cuda_program", "proc", "mixture"], env)
    ledger = json.loads(run([vramscope, "ledger", "--json", "--at", "end", tmp_path / "out"]).stdout)
    [process] = [line for line in ledger["lines"] if line["name"] == "this process"]
    assert process["residual"] == 0, json.dumps(ledger, indent=1)
    # And before it: the same sample, without what the driver allocated in between.
    context = next(part["value"] for part in process["parts"] if part["name"] == "context")
    for moment in range(1, ledger["at"], max(1, ledger["at"] // 30)):
        then = json.loads(run([vramscope, "ledger", "--json", "--at", f"moment:{moment}", tmp_path / "out"]).stdout)
        [before] = [line for line in then["lines"] if line["name"] == "this process"]
        known = {part["name"] for part in before["parts"]}
        # The context is written to the trace when its size is known, a moment after it exists.
        assert before["residual"] == (0 if "context" in known else context), (moment, before)
