"""Recording does not change what a program prints: error messages, tracebacks, warnings, and what it can see of the framework."""
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def outputs(environment, vramscope, tmp_path):
    """outputs(interpreter, file) -> (plain, recorded), each (exit code, stdout, stderr)."""

    def call(python, file):
        command = [str(python), str(HERE / file)]
        return [(done.returncode, done.stdout, done.stderr) for done in (
            subprocess.run([*before, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500, cwd=tmp_path, env=environment)
            for before in ([], [str(vramscope), "run", "--quiet", "-o", str(tmp_path / "out"), "--"]))]

    return call


# Names of temporary files, times and threads; and the running number of all tensors in the names of functions, which also counts those that
# are looked at to learn where variables lie.
RANDOM = re.compile(r"__autograph_generated_file\w+|^[IWE]\d{4} \S+ +\d+ |(?<=__inference_)\w+", re.MULTILINE)


def check(plain, recorded):
    for was, now in zip(plain[1:], recorded[1:]):
        assert RANDOM.sub("", now).splitlines() == RANDOM.sub("", was).splitlines()
    assert plain[0] == recorded[0] == 1 and "Traceback" in plain[1] and "Traceback" in plain[2]


def test_tensorflow(outputs, newest_tensorflow):
    check(*outputs(newest_tensorflow, "tensorflow_errors.py"))
