"""Folders, links and files from somebody else: opening or recovering them loses nothing and overwrites nothing."""
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from recording_support import check_blocks
from test_crash import THREADS, kill_and_wait, producer_pid, start, wait_for_first_event

NOBODY = 65534
MARKER = ".vramscope-folder"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user, which only root can become")


@pytest.fixture
def shared():
    """A folder that every user can reach, as /tmp is."""
    place = Path(tempfile.mkdtemp(prefix="vramscope-hostile-", dir="/tmp"))
    place.chmod(0o1777)
    yield place
    shutil.rmtree(place, ignore_errors=True)


def give_to(user, folder):
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            os.lchown(os.path.join(root, name), user, user)
    os.lchown(folder, user, user)


def run_as(user, command):
    switch = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, **switch)


def killed_run(vramscope, producer, folder, counters, wait_until):
    """A recording whose program and collector were killed: the folder with its link, and the spool that the link leads to."""
    run = start(vramscope, producer, folder, counters)
    child = producer_pid(run.pid, wait_until)
    wait_for_first_event(counters, wait_until)
    kill_and_wait(run.pid)  # first: a collector that sees the program die finishes the trace
    kill_and_wait(child)
    run.wait(600)
    run.stderr.close()
    [link] = folder.glob(".spool-*")
    return link, Path(os.readlink(link))


@pytest.mark.parametrize("owner,opener", [(None, None), pytest.param(NOBODY, None, marks=as_root), pytest.param(0, NOBODY, marks=as_root),
                                          pytest.param(NOBODY, NOBODY, marks=as_root)])
@pytest.mark.parametrize("disguise", ["plain", "with spools", "with a marker"])
def test_recover_deletes_nothing_behind_a_link(vramscope, shared, owner, opener, disguise):
    run, precious = shared / "run", shared / "precious"
    run.mkdir()
    (precious / "below").mkdir(parents=True)
    for name in ("x", "1-0.spool", "1-0.lock", "options", "below/y") if disguise != "plain" else ("x", "below/y"):
        (precious / name).write_text("mine")
    if disguise == "with a marker":
        (precious / MARKER).symlink_to("x")
    (run / ".spool-a-1").symlink_to(precious)
    if owner is not None:
        give_to(owner, run)
    if opener is not None:
        give_to(opener, precious)
    before = sorted(path.relative_to(shared) for path in shared.rglob("*"))
    done = run_as(opener, [vramscope, "recover", run])
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert sorted(path.relative_to(shared) for path in shared.rglob("*")) == before
    assert all(path.read_text() == "mine" for path in precious.rglob("*") if path.is_file())


@as_root
def test_recover_leaves_the_folders_of_others_alone(vramscope, producer, shared, tmp_path, counters, wait_until):
    """Root could delete them. The spool of another user is that user's to recover."""
    link, spool = killed_run(vramscope, producer, tmp_path / "out", counters, wait_until)
    try:
        give_to(NOBODY, spool)
        done = run_as(None, [vramscope, "recover", tmp_path / "out"])
        assert done.returncode == 2 and "another user" in done.stderr
        assert list(spool.glob("*.spool"))
    finally:
        shutil.rmtree(spool)


def test_a_link_to_the_spool_of_another_run_is_refused(vramscope, producer, tmp_path, counters, traces_in, wait_until):
    """Otherwise a folder from somebody else would get the trace, and the run that it belongs to would lose it."""
    link, spool = killed_run(vramscope, producer, tmp_path / "out", counters, wait_until)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / link.name).symlink_to(spool)
    done = run_as(None, [vramscope, "recover", tmp_path / "theirs"])
    assert done.returncode == 2 and "another folder" in done.stderr
    assert not list((tmp_path / "theirs").glob("*.vram")) and list(spool.glob("*.spool"))
    done = run_as(None, [vramscope, "recover", tmp_path / "out"])
    assert done.returncode == 0, done.stderr
    check_blocks(traces_in(tmp_path / "out")[0], counters.read(THREADS))
    assert not spool.exists() and not link.is_symlink()


def test_a_moved_run_is_recovered(vramscope, producer, tmp_path, counters, traces_in, wait_until):
    killed_run(vramscope, producer, tmp_path / "out", counters, wait_until)
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    done = run_as(None, [vramscope, "recover", tmp_path / "elsewhere"])
    assert done.returncode == 0, done.stderr
    check_blocks(traces_in(tmp_path / "elsewhere")[0], counters.read(THREADS))


def test_a_spool_from_an_archive_writes_only_to_the_current_folder(vramscope, producer, tmp_path, counters, traces_in, wait_until):
    _, spool = killed_run(vramscope, producer, tmp_path / "out", counters, wait_until)
    archive, precious, here = (tmp_path / name for name in ("archive", "precious", "here"))
    shutil.copytree(spool, archive, symlinks=True)
    shutil.rmtree(spool)
    precious.mkdir()
    here.mkdir()
    (archive / "run").unlink()
    (archive / "run").symlink_to(precious)
    done = subprocess.run([vramscope, "recover", archive], capture_output=True, text=True, timeout=600, cwd=here)
    assert done.returncode == 0, done.stderr
    assert not list(precious.iterdir()) and len(traces_in(here)) == 1


@pytest.mark.parametrize("suffix", [".defs", ".lock"])
def test_recover_writes_through_no_hard_link(vramscope, producer, tmp_path, counters, wait_until, suffix):
    """An archive can contain a hard link to a file that lies where it is unpacked."""
    _, spool = killed_run(vramscope, producer, tmp_path / "out", counters, wait_until)
    archive, precious = tmp_path / "archive", tmp_path / "bashrc"
    shutil.copytree(spool, archive, symlinks=True)
    shutil.rmtree(spool)
    precious.write_text("export IMPORTANT=1\n")
    [recorded] = archive.glob("*.spool")
    recorded.with_suffix(suffix).unlink(missing_ok=True)
    os.link(precious, recorded.with_suffix(suffix))
    done = subprocess.run([vramscope, "recover", archive], capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode in (0, 2), done.stderr
    assert precious.read_text() == "export IMPORTANT=1\n"


def test_recover_keeps_files_that_it_does_not_know(vramscope, producer, tmp_path, counters, traces_in, wait_until):
    link, spool = killed_run(vramscope, producer, tmp_path / "out", counters, wait_until)
    (spool / "notes.txt").write_text("mine")
    (spool / "kept").mkdir()
    (spool / "1-1.defs").symlink_to(tmp_path / "out")
    try:
        done = run_as(None, [vramscope, "recover", tmp_path / "out"])
        assert "the folder was kept" in done.stderr
        check_blocks(traces_in(tmp_path / "out")[0], counters.read(THREADS))
        assert sorted(path.name for path in spool.iterdir()) == [MARKER, "kept", "notes.txt"]
    finally:
        shutil.rmtree(spool)


def test_recover_shows_names_as_text(vramscope, tmp_path):
    """A link's name and its target come from the author of the folder: a terminal must not obey them."""
    run = tmp_path / "run"
    run.mkdir()
    (run / ".spool-\x1b]0;owned\x07-1").symlink_to("/nonexistent/\x1b[2J\x9b31m\nvramscope: fine")
    (run / ".spool-\x1b[31m-2").symlink_to(tmp_path)
    done = run_as(None, [vramscope, "recover", run])
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 2, done.stderr
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout + done.stderr), ascii(done.stderr)


def test_plans_of_xla_go_to_a_folder_of_their_own(run, vramscope, tmp_path):
    theirs = tmp_path / "xla"
    theirs.mkdir()
    (theirs / "module_0001.theirs.txt").write_text("mine")
    (theirs / "thesis.tex").write_text("mine")
    run([vramscope, "run", "--xla", "-o", tmp_path, "--", "true"])
    assert sorted(path.name for path in theirs.iterdir()) == ["module_0001.theirs.txt", "thesis.tex"]
    assert not list(tmp_path.glob("xla-*")), "nothing was dumped: no folder stays"
    dump = 'd=${XLA_FLAGS#*--xla_dump_to=}; d=${d%% *}; for f in module_1.a.txt module_1.a-buffer-assignment.txt other; do echo > "$d/$f"; done'
    run([vramscope, "run", "--xla", "-o", tmp_path, "--", "sh", "-c", dump])
    [mine] = tmp_path.glob("xla-*")
    assert sorted(path.name for path in mine.iterdir()) == [MARKER, "module_1.a-buffer-assignment.txt", "other"]
    assert sorted(path.name for path in theirs.iterdir()) == ["module_0001.theirs.txt", "thesis.tex"]


def test_plans_of_xla_in_a_folder_with_spaces(run, vramscope, tmp_path):
    """XLA ends a value at a space, unless the value is quoted."""
    folder = tmp_path / 'my "own" runs'
    done = run([vramscope, "run", "--xla", "-o", folder, "--", "sh", "-c", 'printf "%s" "$XLA_FLAGS"; ls -d "$1"/xla-*', "sh", folder])
    flags, _, place = done.stdout.rpartition("--xla_dump_hlo_as_text")
    assert flags == '--xla_dump_to="' + place.strip().replace('"', '\\"') + '" '


@pytest.mark.parametrize("flags", ["--xla_dump_to=/mine --xla_dump_hlo_as_html", "/mine/flags.txt"])
def test_flags_of_the_program_for_xla_stay(run, vramscope, tmp_path, monkeypatch, flags):
    """XLA would take the last of two folders, and would not find a file of that name."""
    monkeypatch.setenv("XLA_FLAGS", flags)
    done = run([vramscope, "run", "--xla", "-q", "-o", tmp_path, "--", "sh", "-c", 'echo "$XLA_FLAGS"'])
    assert done.stdout == flags + "\n"
    assert "cannot keep XLA's plans: XLA_FLAGS" in done.stderr
    assert not list(tmp_path.glob("xla-*"))


@as_root
def test_runs_in_containers_that_share_a_folder_and_their_pids(vramscope, producer, tmp_path, traces_in):
    """Same host name, same process ids, same second: nobody's link or manifest is replaced, and `recover` finds all of them."""
    folder = tmp_path / "out"
    counters = [tmp_path / f"counters{i}" for i in range(6)]
    runs = [subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", str(vramscope), "run", "-q", "-o", str(folder), "--",
                              str(producer), str(path), "1", "1000000000", "pause=4000"], stderr=subprocess.DEVNULL) for path in counters]
    try:
        while not all(path.exists() and any(path.read_bytes()[:8]) for path in counters):
            assert all(run.poll() is None for run in runs)
    finally:
        for run in runs:
            for init in open(f"/proc/{run.pid}/task/{run.pid}/children").read().split():
                kill_and_wait(init)  # and with it the whole container
            run.wait()
    assert len(list(folder.glob("*.manifest.json"))) == len(runs)
    assert len(list(folder.glob(".spool-*"))) == len(runs)
    done = run_as(None, [vramscope, "recover", folder])
    assert done.returncode == 0, done.stderr
    traces = traces_in(folder)
    assert len(traces) == len(runs) and not list(folder.glob(".spool-*"))
    returned = sorted(int.from_bytes(path.read_bytes()[:8], "little") for path in counters)
    found = sorted(len(trace.blocks()[0]) for trace in traces)
    assert all(0 <= there - count <= 1 for there, count in zip(found, returned)), (found, returned)


@pytest.fixture
def trace(vramscope, producer, tmp_path, counters):
    subprocess.run([vramscope, "run", "-q", "-o", tmp_path / "out", "--", producer, counters.path, "1", "100"], check=True)
    return next((tmp_path / "out").glob("*.vram"))


@pytest.mark.parametrize("target", ["a file", "nothing", "a device"])
def test_a_report_replaces_a_link_and_never_follows_it(run, vramscope, trace, tmp_path, target):
    victim, output = tmp_path / "victim", tmp_path / "report.html"
    if target == "a file":
        victim.write_text("mine")
    output.symlink_to("/dev/null" if target == "a device" else victim)
    run([vramscope, "report", trace, "-o", output])
    assert not output.is_symlink() and "<html" in output.read_text()[:200].lower()
    assert victim.read_text() == "mine" if target == "a file" else not victim.exists()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".report")]


@as_root
def test_a_report_does_not_go_into_the_pipe_of_somebody_else(run, vramscope, trace, tmp_path):
    output = tmp_path / "report.html"
    os.mkfifo(output, 0o666)
    os.chown(output, NOBODY, NOBODY)
    reader = os.open(output, os.O_RDONLY | os.O_NONBLOCK)
    try:
        run([vramscope, "report", trace, "-o", output])
        assert os.read(reader, 1) == b"" and output.is_file()
    finally:
        os.close(reader)


def test_a_report_goes_into_a_pipe(vramscope, trace):
    done = subprocess.run([vramscope, "report", trace, "-o", "/dev/stdout"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and "</html>" in done.stdout


def test_a_report_without_a_name_replaces_only_a_report(run, vramscope, trace, tmp_path):
    """The name of the trace, which may be anybody's, makes the name of the report."""
    (tmp_path / "index.vram").write_bytes(trace.read_bytes())
    page = tmp_path / "index.html"
    page.write_text("<html><title>mine</title></html>")
    done = run([vramscope, "report", "index.vram"], code=2, cwd=tmp_path)
    assert "-o" in done.stderr and page.read_text() == "<html><title>mine</title></html>"
    page.unlink()
    for _ in range(2):
        run([vramscope, "report", "index.vram"], cwd=tmp_path)
    assert "</html>" in page.read_text()
    page.write_text("mine")
    run([vramscope, "report", "index.vram", "-o", "index.html"], cwd=tmp_path)
    assert "</html>" in page.read_text()
