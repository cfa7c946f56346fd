"""The stack walker against every Python on this machine. compare.py holds the comparisons; it runs inside each Python."""
import glob
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROBE = Path(os.environ.get("VRAMSCOPE_BUILD", HERE.parents[1] / "build")) / "tests" / "libstack_probe.so"
CASES = re.findall(r"^def case_(\w+)\(", (HERE / "compare.py").read_text(), re.MULTILINE)


def pythons():
    """One interpreter for each version from 3.9 on: the one that runs this test, those on PATH, those of pyenv."""
    found = {}
    candidates = [sys.executable]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidates += sorted(glob.glob(os.path.join(folder, "python3.[0-9]*")))
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))
    for path in candidates:
        if not re.search(r"python[0-9.]*$", path):
            continue
        probe = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
        version = probe.stdout.strip()
        if probe.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 9):
            found.setdefault(version, path)
    return sorted(found.items(), key=lambda item: tuple(map(int, item[0].split("."))))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version,python", [pytest.param(*item, id=item[0]) for item in pythons()])
def test_walker_equals_python(version, python, case):
    run = subprocess.run([python, str(HERE / "compare.py"), str(PROBE), case], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    if case in ("equal", "threads"):
        checked = int(re.search(r"(\d+) stacks equal", run.stdout).group(1))
        assert checked >= 2500
