"""A program that starts sub-interpreters, also those with a lock of their own (Python 3.12 and later), prints what it prints alone."""
import subprocess

import pytest

from interpreters import pythons

PROGRAM = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
inside = "import sys; print('inside', 'sitecustomize' in sys.modules, sorted(n for n in sys.modules if 'vramscope' in n), flush=True)"
interpreters.run_string(interpreters.create(), inside)
print("outside")
"""


@pytest.mark.parametrize("python", [pytest.param(path, id=version) for version, path in pythons()])
def test_a_sub_interpreter_starts_without_a_word(vramscope, python, tmp_path):
    before = ([], [vramscope, "run", "-q", "-o", tmp_path / "out", "--"])
    alone, recorded = (subprocess.run([*words, python, "-c", PROGRAM], capture_output=True, text=True, timeout=120) for words in before)
    assert alone.returncode == 0 and alone.stdout.endswith(" []\noutside\n"), alone        # some systems have a sitecustomize of their own
    assert (recorded.returncode, recorded.stdout, recorded.stderr) == (alone.returncode, alone.stdout, alone.stderr)
