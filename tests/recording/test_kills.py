"""Random kills at a given rate of events: of the program, of the collector, of both. What had returned is in the trace after `recover`.

The rates are those of an ordinary training (40,000 events per second) and of a loop that does little but allocate (1,000,000). A
machine that is busy with other things may not reach the second; VRAMSCOPE_KILLS_LOG names a file that gets a line per kill with what was reached.
"""
import os
import random
import signal
import subprocess
import time

import pytest

from test_crash import kill_and_wait, producer_pid, wait_for_first_event

THREADS = 4
VICTIMS = ("program", "collector", "both")
RATES = (40_000, 1_000_000)
KILLS = 6
SOAK_KILLS = 200


def plan(count):
    """Random, and the same in every run; a failure names its own."""
    draw = random.Random(20261116)
    return [(VICTIMS[i % 3], RATES[i // 3 % 2], round(draw.uniform(0.05, 2.5), 3)) for i in range(count)]


def count_blocks(build, trace):
    done = subprocess.run([build / "tests/count_blocks", trace], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return {int(thread): (int(count), int(misplaced)) for thread, count, misplaced in (line.split() for line in done.stdout.splitlines())}


def note(line):
    if log := os.environ.get("VRAMSCOPE_KILLS_LOG"):
        with open(log, "a") as file:
            file.write(line + "\n")


def kill(victim, rate, moment, build, vramscope, producer, folder, counters, wait_until):
    command = [vramscope, "run", "-q", "-o", folder, "--", producer, counters.path, THREADS, 1_000_000_000, f"rate={rate}"]
    run = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           text=True, start_new_session=True)
    child = producer_pid(run.pid, wait_until)
    wait_for_first_event(counters, wait_until)
    began = time.monotonic()
    time.sleep(moment)
    if victim == "program":
        kill_and_wait(child)
    else:
        if victim == "both":
            os.kill(child, signal.SIGKILL)
        kill_and_wait(run.pid)
        time.sleep(0.05 if victim == "collector" else 0)  # the program continues without its collector
        kill_and_wait(child)
    took = time.monotonic() - began
    run.communicate(timeout=600)
    returned = counters.read(THREADS)
    if victim != "program":
        recovered = subprocess.run([vramscope, "recover", folder], capture_output=True, text=True, timeout=600)
        assert recovered.returncode == 0, recovered.stderr
    [trace] = folder.glob("*.vram")
    blocks = count_blocks(build, trace)
    note(f"{victim} {rate} {moment} {sum(returned)} {2 * sum(returned) / took:.0f}")
    for thread, count in enumerate(returned):
        found, misplaced = blocks.get(thread, (0, 0))
        assert misplaced == 0, f"thread {thread}: {misplaced} blocks out of order or missing before others"
        assert count <= found <= count + 1, f"thread {thread}: {count} calls returned, {found} recorded"


@pytest.mark.parametrize("victim,rate,moment", plan(KILLS))
def test_kills(victim, rate, moment, build, vramscope, producer, tmp_path, counters, wait_until):
    kill(victim, rate, moment, build, vramscope, producer, tmp_path / "out", counters, wait_until)


@pytest.mark.soak
@pytest.mark.parametrize("victim,rate,moment", plan(SOAK_KILLS)[KILLS:])
def test_soak(victim, rate, moment, build, vramscope, producer, tmp_path, counters, wait_until):
    kill(victim, rate, moment, build, vramscope, producer, tmp_path / "out", counters, wait_until)
