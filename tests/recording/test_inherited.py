"""A command inherits through `vramscope run` what it would inherit without it."""
import os
import signal
import subprocess
import sys

import pytest

IGNORES_CHILDREN = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
SAYS_WHETHER_IGNORED = "import signal; print(signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN)"
DEATH_SIGNAL = "import ctypes; got = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(got)); print(got.value)"
SETS_DEATH_SIGNAL = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 12); os.execv(sys.argv[1], sys.argv[1:])"


def started_by(script, *command):
    return subprocess.run([sys.executable, "-c", script, *map(str, command)], capture_output=True, text=True, timeout=60)


def test_a_parent_that_ignores_its_children_does_not_hang_the_run(vramscope, tmp_path):
    """A child that ends at once must not be gone before it is waited for. Each turn is a chance for that."""
    for turn in range(20):
        assert started_by(IGNORES_CHILDREN, vramscope, "run", "-q", "-o", tmp_path / "out", "--", "/bin/true").returncode == 0, turn


@pytest.mark.parametrize("sets, says", [(IGNORES_CHILDREN, SAYS_WHETHER_IGNORED), (SETS_DEATH_SIGNAL, DEATH_SIGNAL)],
                         ids=["ignored children", "death signal"])
def test_it_is_inherited(vramscope, tmp_path, sets, says):
    command = (sys.executable, "-S", "-c", says)
    alone = started_by(sets, *command)
    recorded = started_by(sets, vramscope, "run", "-q", "-o", tmp_path / "out", "--", *command)
    assert alone.stdout.strip() in ("True", str(int(signal.SIGUSR2)))
    assert (recorded.returncode, recorded.stdout) == (alone.returncode, alone.stdout)


def test_a_link_named_latest_that_is_not_ours_stays(vramscope, producer, counters, tmp_path):
    """In an unpacked archive, vramscope-runs may be a link to any folder."""
    releases = tmp_path / "releases"
    releases.mkdir()
    (releases / "v2").mkdir()
    (releases / "latest").symlink_to("v2")
    work = tmp_path / "work"
    work.mkdir()
    (work / "vramscope-runs").symlink_to(releases)
    subprocess.run([vramscope, "run", "-q", "--", producer, counters.path, "1", "100"], cwd=work, check=True, timeout=60)
    assert os.readlink(releases / "latest") == "v2"
    assert list(releases.glob("*/*.vram"))


def test_a_link_beside_the_chosen_folder_stays(vramscope, tmp_path):
    (tmp_path / "runs/today").mkdir(parents=True)
    (tmp_path / "runs/latest").symlink_to("today")
    subprocess.run([vramscope, "run", "-q", "-o", "runs/today", "--", "true"], cwd=tmp_path, check=True)
    assert os.readlink(tmp_path / "runs/latest") == "today"
