"""SIGKILL at any moment, of the program, of the collector, of both, of the whole group: what had returned is in the trace."""
import os
import random
import re
import signal
import subprocess
import time

import pytest

from recording_support import check_blocks

THREADS = 4
MOMENTS = 50
SOAK_MOMENTS = 1000
OPS = 4  # that the producer names


def start(vramscope, producer, folder, counters, *options):
    command = [vramscope, "run", "-q", "-o", folder, *options, "--", producer, counters.path, str(THREADS), "1000000000", "pause=4000"]
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True, start_new_session=True)


def producer_of(collector):
    """The child of the collector that is the producer, once there is one."""
    try:
        children = open(f"/proc/{collector}/task/{collector}/children").read().split()
    except FileNotFoundError:
        children = []
    for pid in children:
        try:
            if "spool_producer" in os.readlink(f"/proc/{pid}/exe"):
                return int(pid)
        except OSError:
            continue
    return None


def producer_pid(collector, wait_until):
    return wait_until(lambda: producer_of(collector), "the producer starts")


def wait_for_first_event(counters, wait_until):
    wait_until(lambda: counters.path.exists() and counters.path.stat().st_size >= 8 * THREADS and any(counters.read(THREADS)),
               "the first event comes")


def has_ended(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill_and_wait(pid):
    try:
        os.kill(int(pid), signal.SIGKILL)
    except ProcessLookupError:
        pass
    while not has_ended(pid):
        time.sleep(0.001)


@pytest.fixture
def started(vramscope, producer, tmp_path, counters, wait_until):
    """started(option...) -> (the collector, the producer's process id), when the first event has come."""

    def call(*options):
        run = start(vramscope, producer, tmp_path / "out", counters, *options)
        child = producer_pid(run.pid, wait_until)
        wait_for_first_event(counters, wait_until)
        return run, child

    return call


@pytest.fixture
def more_events(counters, wait_until):
    """more_events(n) returns when the producer has recorded at least n more."""

    def call(count):
        before = sum(counters.read(THREADS))
        wait_until(lambda: sum(counters.read(THREADS)) >= before + count, f"{count} more events come")

    return call


def crash(victim, moment, vramscope, tmp_path, counters, traces_in, started, more_events):
    folder = tmp_path / "out"
    run, child = started()
    time.sleep(moment)  # any moment will do: whenever it is, what had returned must be in the trace
    finished = victim == "program"
    if victim == "program":
        kill_and_wait(child)
        completed = counters.read(THREADS)
        assert run.wait(600) == -signal.SIGKILL, run.stderr.read()
    else:
        if victim == "collector":
            kill_and_wait(run.pid)
            more_events(1000)
            kill_and_wait(child)
        elif victim == "both":
            os.kill(child, signal.SIGKILL)
            kill_and_wait(run.pid)
            kill_and_wait(child)
        else:
            os.killpg(run.pid, signal.SIGKILL)
            kill_and_wait(run.pid)
            kill_and_wait(child)
        run.wait(600)
        completed = counters.read(THREADS)
        recovered = subprocess.run([vramscope, "recover", folder], capture_output=True, text=True, timeout=600)
        # Between the two kills, the collector may have seen the program die and come to the end of its work.
        finished = victim == "both" and recovered.stderr.endswith("nothing to recover; every recording finished normally\n")
        assert recovered.returncode == (2 if finished else 0), recovered.stderr
        assert not list(folder.glob(".spool*")), "the spool is gone after the recovery"
    run.stderr.close()
    traces = traces_in(folder)
    assert len(traces) == 1
    assert not traces[0].remark
    check_blocks(traces[0], completed)
    if finished:
        assert traces[0].settings()["process.signal"] == "9"
    names = {event["op"] for event in traces[0].kind("alloc")}
    assert "" not in names, "an op has lost its name"


def test_hidden_names_stay_the_same_through_a_recovery(vramscope, tmp_path, counters, traces_in, started, more_events, wait_until):
    """Half of the trace was written by the collector that died, half comes from the spool."""
    folder = tmp_path / "out"
    run, child = started("--anonymize")
    wait_until(lambda: any(path.stat().st_size > 10_000 for path in folder.glob("*.vram")), "half of the trace is written")
    kill_and_wait(run.pid)
    more_events(1000)
    kill_and_wait(child)
    run.wait(600)
    run.stderr.close()
    assert subprocess.run([vramscope, "recover", folder], capture_output=True, timeout=600).returncode == 0
    [trace] = traces_in(folder)
    check_blocks(trace, counters.read(THREADS))
    names = {event["op"] for event in trace.kind("alloc")}
    assert all(re.fullmatch(r"~[0-9a-f]{12}(/~[0-9a-f]{12})*", name) for name in names), names
    assert len(names) == OPS


VICTIMS = ("program", "collector", "both", "group")


def moments(count):
    """Random, and the same in every run; a failure names its own."""
    draw = random.Random(20260801)
    return [(VICTIMS[i % len(VICTIMS)], round(draw.uniform(0, 0.6) if i % 5 else draw.uniform(0.9, 1.3), 4)) for i in range(count)]


@pytest.mark.parametrize("victim,moment", moments(MOMENTS))
def test_what_had_returned_is_in_the_trace(victim, moment, vramscope, tmp_path, counters, traces_in, started, more_events):
    crash(victim, moment, vramscope, tmp_path, counters, traces_in, started, more_events)


@pytest.mark.soak
@pytest.mark.parametrize("victim,moment", moments(SOAK_MOMENTS)[MOMENTS:])
def test_soak(victim, moment, vramscope, tmp_path, counters, traces_in, started, more_events):
    crash(victim, moment, vramscope, tmp_path, counters, traces_in, started, more_events)


def test_the_oracle_can_fail(vramscope, producer, tmp_path, counters, traces_in):
    subprocess.run([vramscope, "run", "-q", "-o", tmp_path / "out", "--", producer, counters.path, str(THREADS), "100"], check=True)
    trace = traces_in(tmp_path / "out")[0]
    check_blocks(trace, counters.read(THREADS))
    trace.events.remove(trace.kind("alloc")[50])
    with pytest.raises(AssertionError):
        check_blocks(trace, counters.read(THREADS))
