"""A program in a PID namespace of its own, as in a container: its numbers mean nothing to the collector outside."""
import subprocess

import pytest

from recording_support import check_blocks

THREADS = 4


@pytest.fixture(scope="module")
def inside():
    """The command that runs another one in a new PID namespace."""
    for prefix in (["unshare", "--pid", "--fork", "--mount-proc"], ["unshare", "--pid", "--fork", "--mount-proc", "--map-root-user"]):
        if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
            return prefix
    pytest.skip("no PID namespaces here: neither root nor unprivileged user namespaces")


@pytest.mark.parametrize("first", [[], ["sh", "-c", '"$@"; exit $?', "sh"]], ids=["first process", "second process"])
def test_every_event_is_recorded(run, vramscope, producer, counters, traces_in, tmp_path, inside, first):
    """Process 1 in there is another process out here, and process 2 may be none."""
    run([vramscope, "run", "-q", "-o", tmp_path / "out", "--", *inside, *first, producer, counters.path, THREADS, 60_000, "pause=2000"])
    [trace] = traces_in(tmp_path / "out")
    check_blocks(trace, counters.read(THREADS))
    assert not trace.kind("lost")


def test_threads_that_end(run, vramscope, producer, counters, traces_in, tmp_path, inside):
    """Nobody outside can see whether they are alive: their segments come back when the process has ended, at the latest."""
    run([vramscope, "run", "-q", "-o", tmp_path / "out", "--", *inside, producer, counters.path, THREADS, 2_000, "threads-end"])
    [trace] = traces_in(tmp_path / "out")
    check_blocks(trace, counters.read(THREADS))
