"""`recover` gives everything or changes nothing: it fails, is killed, runs twice or meets files of others, and no event is lost."""
import os
import resource
import shutil
import signal
import subprocess

import pytest

from recording_support import Trace, check_blocks
from test_crash import THREADS, kill_and_wait, producer_pid, start, wait_for_first_event
from test_hostile_folders import NOBODY, as_root, shared  # noqa: F401

# Sends itself a signal before a trace gets its name.
AT_RENAME = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
static void at(const char* to) {
  const size_t length = strlen(to);
  if (length > 5 && strcmp(to + length - 5, ".vram") == 0) raise(atoi(getenv("SIGNAL_AT_RENAME")));
}
int rename(const char* from, const char* to) {
  at(to);
  return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(from, to);
}
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  at(to);
  return ((int (*)(int, const char*, int, const char*, unsigned))dlsym(RTLD_NEXT, "renameat2"))(a, from, b, to, flags);
}
"""


# Kills the collector when it has just created a trace: nothing is in it yet.
AT_CREATION = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>
static int opened(const char* symbol, const char* path, int flags, mode_t mode) {
  int file = ((int (*)(const char*, int, mode_t))dlsym(RTLD_NEXT, symbol))(path, flags, mode);
  const size_t length = strlen(path);
  if (file >= 0 && (flags & O_EXCL) && length > 5 && strcmp(path + length - 5, ".vram") == 0) raise(SIGKILL);
  return file;
}
#define INSTEAD_OF(name)                          \
  int name(const char* path, int flags, ...) {    \
    va_list rest;                                 \
    va_start(rest, flags);                        \
    const mode_t mode = va_arg(rest, mode_t);     \
    va_end(rest);                                 \
    return opened(#name, path, flags, mode);      \
  }
INSTEAD_OF(open)
INSTEAD_OF(open64)
"""


def preload(tmp_path, source):
    library = tmp_path / "preload.so"
    (tmp_path / "preload.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "preload.c", "-ldl"], check=True, timeout=60)
    return str(library)


class Interrupted:
    """A run of which the first events are in the trace and the last ones only in the spool."""

    def __init__(self, vramscope, folder, counters):
        self.vramscope, self.folder, self.counters = vramscope, folder, counters
        [link] = folder.glob(".spool-*")
        [self.trace] = folder.glob("*.vram")
        self.spool = link.resolve()

    def recover(self, folder=None, **options):
        return subprocess.run([self.vramscope, "recover", folder or self.folder], capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL, **options)

    def spooled(self):
        [path] = self.spool.glob("*.spool")
        return path.read_bytes()

    def check_whole(self):
        trace = Trace(self.vramscope, self.trace)
        assert not trace.remark
        check_blocks(trace, self.counters.read(THREADS))
        assert not self.spool.exists() and not list(self.folder.glob(".spool-*"))


@pytest.fixture
def interrupted(vramscope, producer, counters, wait_until):
    """interrupted(folder) -> Interrupted"""
    spools = []

    def call(folder):
        run = start(vramscope, producer, folder, counters)
        child = producer_pid(run.pid, wait_until)
        wait_for_first_event(counters, wait_until)
        wait_until(lambda: any(path.stat().st_size > 10_000 for path in folder.glob("*.vram")), "the trace begins")
        os.kill(run.pid, signal.SIGSTOP)
        stored = sum(counters.read(THREADS))
        wait_until(lambda: sum(counters.read(THREADS)) > stored + 20_000, "events come that only the spool has")
        kill_and_wait(run.pid)
        kill_and_wait(child)
        run.wait(600)
        run.stderr.close()
        made = Interrupted(vramscope, folder, counters)
        spools.append(made.spool)
        return made

    call.spools = spools
    yield call
    for spool in spools:
        shutil.rmtree(spool, ignore_errors=True)


@pytest.fixture
def just_created(vramscope, producer, counters, wait_until, interrupted, tmp_path, monkeypatch):
    """just_created(folder) -> Interrupted, with a trace that is still empty"""

    def call(folder):
        with monkeypatch.context() as environment:
            environment.setenv("LD_PRELOAD", preload(tmp_path, AT_CREATION))
            run = start(vramscope, producer, folder, counters)
        child = producer_pid(run.pid, wait_until)
        run.wait(600)
        run.stderr.close()
        wait_for_first_event(counters, wait_until)
        kill_and_wait(child)
        made = Interrupted(vramscope, folder, counters)
        interrupted.spools.append(made.spool)
        return made

    return call


def give_copies(whole, trace, cut):
    """A neighbor's files, with names that match: complete ones, or with the end missing."""
    copies = [trace.with_name(f"{trace.stem}-{letter}.vram") for letter in "abcdefgh"]
    for copy in copies:
        copy.write_bytes(whole[:-120] if cut else whole)
        os.chown(copy, NOBODY, NOBODY)
    return copies


def recovered_copy(run, tmp_path, spooled=True):
    """What the recovery of a copy makes of it; if wanted, of the trace alone."""
    archive, place = tmp_path / "archive", tmp_path / "elsewhere"
    shutil.copytree(run.spool, archive, symlinks=True)
    (archive / "run").unlink()  # not into the folder of the original
    place.mkdir()
    shutil.copy(run.trace, place)
    [spool] = archive.glob("*.spool")
    if not spooled:
        segments = spool.stat().st_size & ~0xFFFFF
        with open(spool, "r+b") as file:
            file.seek(-segments, os.SEEK_END)
            file.write(bytes(segments))
    assert run.recover(archive, cwd=place).returncode == 0
    return (place / run.trace.name).read_bytes()


@as_root
@pytest.mark.parametrize("cut", [False, True])
def test_traces_of_others_are_not_believed(interrupted, shared, tmp_path, cut):  # noqa: F811
    run = interrupted(shared / "out")
    run.folder.chmod(0o1777)
    whole = recovered_copy(run, tmp_path)
    copies = give_copies(whole, run.trace, cut)
    done = run.recover()
    assert done.returncode == 0, done.stderr
    run.check_whole()
    assert all(copy.stat().st_uid == NOBODY and copy.read_bytes() == (whole[:-120] if cut else whole) for copy in copies)


def test_a_complete_trace_without_the_last_events_is_continued(interrupted, tmp_path):
    """The same start time, and an end: only the number of its last event shows that it is not all."""
    run = interrupted(tmp_path / "out")
    run.trace.write_bytes(recovered_copy(run, tmp_path, spooled=False))
    done = run.recover()
    assert done.returncode == 0, done.stderr
    run.check_whole()


def test_a_folder_in_the_way(interrupted, tmp_path):
    run = interrupted(tmp_path / "out")
    (run.folder / (run.trace.name + ".recovered") / "not empty").mkdir(parents=True)
    done = run.recover()
    assert done.returncode == 0, done.stderr
    run.check_whole()


@pytest.mark.parametrize("share,has_trace", [(0, True), (0.05, True), (0.9, True), (0.05, False)])
def test_a_full_disk_changes_nothing(interrupted, tmp_path, share, has_trace):
    """A limit on the size of files fails like a full disk: before the first byte, or in the middle."""
    run = interrupted(tmp_path / "out")
    limit = int(share * len(recovered_copy(run, tmp_path)))
    if not has_trace:
        kept = tmp_path / "kept"
        run.trace.rename(kept)
    before = (run.spooled(), sorted(path.name for path in run.folder.iterdir()), run.trace.read_bytes() if has_trace else b"")
    done = run.recover(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)), restore_signals=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1 and str(run.spool) in done.stderr and "run 'vramscope recover' again" in done.stderr
    assert (run.spooled(), sorted(path.name for path in run.folder.iterdir()), run.trace.read_bytes() if has_trace else b"") == before
    if not has_trace:
        kept.rename(run.trace)
    done = run.recover()
    assert done.returncode == 0, done.stderr
    run.check_whole()


@pytest.fixture
def at_rename(tmp_path):
    """at_rename(signal) -> environment in which a recovery sends itself the signal before a trace gets its name"""
    library = preload(tmp_path, AT_RENAME)
    return lambda number: {**os.environ, "LD_PRELOAD": library, "SIGNAL_AT_RENAME": str(int(number))}


def test_a_recovery_that_is_killed_is_repeated(interrupted, tmp_path, at_rename):
    run = interrupted(tmp_path / "out")
    before = run.spooled()
    for _ in range(2):
        assert run.recover(env=at_rename(signal.SIGKILL)).returncode == -signal.SIGKILL
        assert run.spooled() == before
        assert len(list(run.folder.glob("*.recovered"))) == 1, "the one before is removed"
    done = run.recover()
    assert done.returncode == 0, done.stderr
    run.check_whole()
    assert not list(run.folder.glob("*.recovered"))


def test_one_recovery_at_a_time(vramscope, interrupted, tmp_path, at_rename):
    run = interrupted(tmp_path / "out")
    first = subprocess.Popen([vramscope, "recover", run.folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=at_rename(signal.SIGSTOP))
    try:
        _, status = os.waitpid(first.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        second = run.recover()
        assert second.returncode == 2 and "another recovery is running" in second.stderr, second.stdout + second.stderr
        assert len(second.stderr.splitlines()) == 1
    finally:
        os.kill(first.pid, signal.SIGCONT)
        _, errors = first.communicate(timeout=600)
    assert first.returncode == 0, errors
    run.check_whole()


def test_a_trace_that_was_just_created_is_replaced(just_created, tmp_path):
    run = just_created(tmp_path / "out")
    assert run.trace.stat().st_size == 0
    bystander = run.trace.with_name(f"{run.trace.stem}-7.vram")
    bystander.touch()  # its name matches, but the collector did not create it
    done = run.recover()
    assert done.returncode == 0, done.stderr
    run.check_whole()
    assert sorted(run.folder.glob("*.vram")) == sorted([run.trace, bystander]) and bystander.stat().st_size == 0


def a_link(trace, aside):
    aside.touch()
    trace.symlink_to(aside)


def a_second_name(trace, aside):
    aside.touch()
    trace.hardlink_to(aside)


def a_text(trace, aside):
    trace.write_text("mine")


def a_folder(trace, aside):
    trace.mkdir()


@pytest.mark.parametrize("thing", [a_link, a_second_name, a_text, a_folder])
def test_what_took_the_place_of_an_empty_trace_is_kept(just_created, tmp_path, thing):
    run = just_created(tmp_path / "out")
    run.trace.unlink()
    aside = tmp_path / "aside"
    thing(run.trace, aside)
    before = run.trace.lstat()
    done = run.recover()
    assert done.returncode == 0, done.stderr
    after = run.trace.lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)
    assert not aside.exists() or aside.stat().st_size == 0
    run.trace = run.trace.with_name(f"{run.trace.stem}-2.vram")
    run.check_whole()
