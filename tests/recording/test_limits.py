"""Near the limits of the system the command comes first: it runs, with its own exit code, recorded or not."""
import os
import re
import resource
import socket
import subprocess
import time

import pytest

from recording_support import Trace
from test_hostile_folders import as_root, shared  # noqa: F401

ALONE = 54321  # a user with no process but those of the test: the limit on processes counts them all


def processes_of(user):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == user:
                found.append(int(pid))
        except FileNotFoundError:
            continue
    return found


@pytest.fixture(autouse=True)
def nothing_is_left_running():
    """Neither by the test before, which would count against the limit, nor by this one."""
    yield
    deadline = time.monotonic() + 30
    while processes_of(ALONE) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not processes_of(ALONE)


def run_limited(command, limits, user=None):
    def apply():
        for limit, value in limits.items():
            resource.setrlimit(limit, (value, value))
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, preexec_fn=apply)


@pytest.mark.parametrize("files", range(4, 14))
def test_few_open_files(vramscope, tmp_path, files):
    command = ["/bin/sh", "-c", "echo fine; exit 7"]
    limits = {resource.RLIMIT_NOFILE: files}
    assert run_limited(command, limits).returncode == 7, "what is tested is ours, not the command's"
    done = run_limited([vramscope, "run", "-o", tmp_path / "out", "--", *command], limits)
    assert (done.returncode, done.stdout) == (7, "fine\n"), done.stderr
    assert all(line.startswith("vramscope: ") for line in done.stderr.splitlines()), done.stderr
    assert done.stderr
    assert not list((tmp_path / "out").glob(".spool-*"))


@as_root
@pytest.mark.parametrize("live", [[], ["--live"]])
@pytest.mark.parametrize("processes", range(1, 9))
def test_few_processes(vramscope, shared, processes, live):  # noqa: F811
    limits = {resource.RLIMIT_NPROC: processes}
    done = run_limited([vramscope, "run", *live, "-o", shared / "out", "--", "/bin/sh", "-c", "echo fine; exit 7"], limits, user=ALONE)
    assert (done.returncode, done.stdout) == (7, "fine\n"), done.stderr
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith("vramscope: ") for line in lines), done.stderr
    if processes == 1:
        assert "not recording" in lines[0] and "ulimit -u" in lines[0]
    if live and processes == 3:
        assert "no live page" in lines[0] and "ulimit -u" in lines[0]


@as_root
def test_the_training_goes_on_when_the_recording_cannot(vramscope, shared):  # noqa: F811
    """A signal ends the command, not the page: nothing is orphaned."""
    limits = {resource.RLIMIT_NPROC: 3}
    done = run_limited([vramscope, "run", "--live", "-o", shared / "out", "--", "/bin/sh", "-c", "kill -TERM $$"], limits, user=ALONE)
    assert done.returncode == -15, done.stderr


@pytest.mark.parametrize("options", [["--live"], ["--metrics", "127.0.0.1:0"]], ids=lambda options: options[0])
def test_visitors_do_not_end_the_recording(vramscope, producer, tmp_path, options):
    """Connections of strangers leave the recorder the descriptors that it needs for new processes."""
    folder, gate, limit = tmp_path / "out", tmp_path / "gate", {resource.RLIMIT_NOFILE: 64}
    script = 'while [ ! -e "$2" ]; do sleep 0.1; done; for i in 1 2 3 4; do "$1" "$3/counters$i" 1 100 & done; wait; exit 7'
    run = subprocess.Popen([str(word) for word in (vramscope, "run", *options, "-o", folder, "--", "sh", "-c", script, "sh", producer, gate, tmp_path)],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: [resource.setrlimit(name, (value, value)) for name, value in limit.items()])
    port = int(re.search(r"127\.0\.0\.1:(\d+)", run.stderr.readline()).group(1))
    visitors = []
    try:
        for _ in range(150):
            visitors.append(socket.create_connection(("127.0.0.1", port), timeout=60))
            visitors[-1].sendall(b"GET")
    finally:
        gate.touch()
        said = run.communicate(timeout=120)[1]
        for visitor in visitors:
            visitor.close()
    assert run.returncode == 7, said
    assert len(list(folder.glob("*.vram"))) == 4 and "Too many open files" not in said, said


@pytest.mark.parametrize("length", [0, 64 * 1024, 300 * 1024])
def test_a_truncated_spool_ends_one_recording(vramscope, producer, tmp_path, wait_until, length):
    """The pages after the new end are gone from every mapping: the collector survives, and so does the command."""
    folder, gate, counters = tmp_path / "out", tmp_path / "gate", [tmp_path / "counters", tmp_path / "others"]
    script = '"$1" "$2" 1 20000 "gate=$4" & "$1" "$3" 1 20000 "gate=$4"; first=$?; wait $!; echo "ends $first $?"; exit 7'
    run = subprocess.Popen([str(word) for word in (vramscope, "run", "-q", "-o", folder, "--", "sh", "-c", script, "sh", producer, *counters, gate)],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: all(path.exists() and int.from_bytes(path.read_bytes()[:8], "little") == 10_000 for path in counters), "half of the events come")
    wait_until(lambda: len(list(folder.glob("*.vram"))) == 2, "the traces begin")
    [link] = folder.glob(".spool-*")
    spool = min(link.resolve().glob("*.spool"))
    os.truncate(spool, length)
    wait_until(lambda: run.poll() is not None or not spool.exists(), "the recording of one process ends")
    gate.touch()
    output, errors = run.communicate(timeout=60)
    assert (run.returncode, output) == (7, "ends 0 0\n"), errors
    assert len(errors.splitlines()) == 1 and "truncated" in errors, errors
    assert not list(folder.glob(".spool-*")) and not spool.parent.exists()
    totals = sorted(len(Trace(vramscope, path).kind("alloc")) for path in folder.glob("*.vram"))
    assert totals[0] <= 10_000 and totals[1] == 20_000
