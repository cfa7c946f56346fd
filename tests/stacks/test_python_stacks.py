"""The stack walker against every Python on this machine. compare.py holds the comparisons; it runs inside each Python."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from interpreters import pythons

HERE = Path(__file__).resolve().parent


PROBE = Path(os.environ.get("VRAMSCOPE_BUILD", HERE.parents[1] / "build")) / "tests" / "libstack_probe.so"
CASES = re.findall(r"^def case_(\w+)\(", (HERE / "compare.py").read_text(), re.MULTILINE)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version,python", [pytest.param(*item, id=item[0]) for item in pythons()])
def test_walker_equals_python(version, python, case):
    run = subprocess.run([python, str(HERE / "compare.py"), str(PROBE), case], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    if case in ("equal", "threads"):
        checked = int(re.search(r"(\d+) stacks equal", run.stdout).group(1))
        assert checked >= 2500
