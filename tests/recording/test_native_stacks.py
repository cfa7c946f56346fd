"""Native stacks where they could do harm: on stacks that come and go, beside the loader's lock, and in a spool from somebody else."""
import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from test_crash import kill_and_wait

PROGRAMS = Path(__file__).resolve().parent / "programs"
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the program sets registers and instructions of x86-64")


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    program = tmp_path_factory.mktemp("native") / "native_victim"
    # libgcc_s: without it, there are no unwind tables to walk.
    subprocess.run(["gcc", "-O1", "-fno-omit-frame-pointer", "-o", program, PROGRAMS / "native_victim.c", "-ldl", "-Wl,--no-as-needed", "-lgcc_s"],
                   check=True, timeout=60)
    return program


@pytest.fixture
def environment(build):
    fakegpu = build / "tests/fakegpu"
    if not (fakegpu / "libcuda.so.1").exists():
        pytest.skip("the fake driver is not built")
    return {**os.environ, "LD_LIBRARY_PATH": str(fakegpu)}


@pytest.fixture
def record(vramscope, environment, tmp_path):
    """record(command, options...) -> (exit code, stdout, allocations in the trace)"""

    def call(command, *options):
        words = [vramscope, "run", "-q", "-o", tmp_path / "out", *options, "--", *command]
        done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=environment)
        summary = subprocess.run([vramscope, "summary", "--json", tmp_path / "out"], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, json.loads(summary.stdout)["driver"]["allocs"]

    return call


def dumped(vramscope, folder):
    [trace] = folder.glob("*.vram")
    return subprocess.run([vramscope, "dump", "--jsonl", trace], capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("unwind", ["frames", "tables"])
def test_coroutines_on_stacks_that_end_where_a_mapping_ends(record, victim, vramscope, tmp_path, unwind):
    assert record([victim, "coroutines"], "--stacks", "native", "--unwind", unwind) == (0, "44 coroutines\n", 44)
    shown = dumped(vramscope, tmp_path / "out")
    assert shown.count('"allocate_here ') == shown.count('"in_coroutine ') == 44


def loader_functions():
    """Offsets of the loader's functions in the libc of this process, which is the program's as well."""
    libc = re.search(r"(/\S+/libc\.so\.6)$", Path("/proc/self/maps").read_text(), re.M).group(1)
    listed = subprocess.run(["nm", "-D", "--defined-only", libc], capture_output=True, text=True, timeout=60, check=True).stdout
    found = re.findall(r"^([0-9a-f]+) \w (?:dlsym|dlvsym|dlopen|dlmopen)@@", listed, re.M)
    if len(found) != 4:
        pytest.skip("before glibc 2.34, the loader's functions are not in libc")
    return found


def test_the_program_notices_when_the_loader_is_asked(victim, environment):
    done = subprocess.run([victim, "ask", *loader_functions()], capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout) == (3, "the loader was asked\n")


@pytest.mark.parametrize("unwind", ["frames", "tables"])
def test_recording_a_stack_never_asks_the_loader(record, victim, vramscope, tmp_path, unwind):
    """Another thread may hold the loader's lock and wait for the one that allocates; and a failed look-up would change dlerror()."""
    assert record([victim, "allocate", *loader_functions()], "--stacks", "both", "--unwind", unwind) == (0, "10 blocks\n", 10)
    assert "allocate_here" in dumped(vramscope, tmp_path / "out")


class Opened:
    """Counts how often a file is opened, by anyone."""

    def __init__(self, path):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._libc.inotify_add_watch(self._file, os.fsencode(path), 0x20) >= 0      # IN_OPEN

    def times(self):
        try:
            return len(os.read(self._file, 65536)) // 16
        except BlockingIOError:
            return 0


@pytest.mark.parametrize("origin", ["its own run", "an archive"])
def test_recover_opens_the_program_only_for_a_run_of_its_own(vramscope, victim, environment, tmp_path, origin):
    """The spool names files; one from somebody else could name any file."""
    out, archive, here = (tmp_path / name for name in ("out", "archive", "here"))
    here.mkdir()
    run = subprocess.Popen([vramscope, "run", "-q", "-o", out, "--stacks", "native", "--", victim, "hold"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    child = int(run.stdout.readline())
    kill_and_wait(run.pid)  # first: a collector that sees the program die finishes the trace
    kill_and_wait(child)
    run.communicate(timeout=60)
    [link] = out.glob(".spool-*")
    spool = Path(os.readlink(link))
    if origin == "an archive":
        shutil.copytree(spool, archive, symlinks=True)
        shutil.rmtree(spool)
        for trace in out.glob("*.vram"):
            trace.unlink()
    opened = Opened(victim)
    done = subprocess.run([vramscope, "recover", archive if origin == "an archive" else out], capture_output=True, text=True, timeout=120, cwd=here)
    times = opened.times()
    assert done.returncode == 0, done.stderr
    recovered = dumped(vramscope, next(folder for folder in (out, here) if list(folder.glob("*.vram"))))
    assert recovered.count('"alloc"') == 10 and str(victim) in recovered
    assert ("allocate_here" in recovered, times > 0) == (origin == "its own run",) * 2
