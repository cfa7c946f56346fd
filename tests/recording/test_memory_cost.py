"""What recording costs in memory, by the kernel's account of a container of 256 MiB, and what `doctor` says about it."""
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

MIB = 1 << 20
LIMIT = 256 * MIB
RATE = 40_000
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


def memory_of(group):
    """Anonymous and shared memory: what cannot be dropped."""
    rows = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int(rows.get("rss", rows.get("anon", 0))) + int(rows.get("shmem", 0))


@pytest.fixture
def container():
    """container(command) -> the most memory that the command and all that it starts took together."""
    place, limit = (V1, "memory.limit_in_bytes") if (V1 / "memory.stat").exists() else (V2, "memory.max")
    group = place / f"vramscope-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(LIMIT))
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")

    def run(command):
        process = subprocess.Popen([str(word) for word in command], preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
        most = 0
        while process.poll() is None:
            most = max(most, memory_of(group))
            time.sleep(0.01)
        assert process.returncode == 0
        return most / MIB

    yield run
    deadline = time.monotonic() + 30
    while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    group.rmdir()


def promised(run, vramscope):
    findings = json.loads(run([vramscope, "doctor", "--json"], code=None).stdout)["findings"]
    [memory] = [finding for finding in findings if finding["what"] == "memory"]
    low, high, small_low, small_high = map(int, re.findall(r"\d+", memory["detail"]))
    return high, small_high


def test_recording_costs_what_doctor_says(run, vramscope, producer, tmp_path, container):
    work = [producer, tmp_path / "counters", 4, RATE, f"rate={RATE}", "sizes=50"]
    plain = container(work)
    high, small_high = promised(run, vramscope)
    recorded = container([vramscope, "run", "-q", "-o", tmp_path / "out", "--", *work]) - plain
    small = container([vramscope, "run", "-q", "--small", "-o", tmp_path / "small", "--", *work]) - plain
    assert recorded <= high and small <= small_high, (recorded, small)
    assert small < recorded


def test_doctor_recommends_small_in_a_small_container(vramscope, container, tmp_path):
    out = tmp_path / "said"
    container(["sh", "-c", f'"{vramscope}" doctor > "{out}" || true'])
    assert "record with --small" in out.read_text()
