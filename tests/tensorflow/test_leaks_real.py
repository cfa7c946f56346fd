"""Leak verdicts on real TensorFlow programs: none may be misjudged. The confusion table is printed."""
import json
import subprocess
from pathlib import Path

import pytest

from leak_programs import CLEAN, LEAKS

HERE = Path(__file__).resolve().parent
verdicts = {}


@pytest.fixture(scope="module")
def python():
    from conftest import tensorflow_python
    return tensorflow_python("2.21")


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    print("\ntruth \\ verdict      growing  not growing  cannot tell")
    for truth, names in (("clean", CLEAN), ("leak", LEAKS)):
        row = [sum(verdicts.get(n) == v for n in names) for v in ("growing", "not growing", "cannot tell")]
        print(f"{truth:18} {row[0]:9} {row[1]:12} {row[2]:12}")


@pytest.mark.parametrize("name", CLEAN + LEAKS)
def test_verdict(name, vramscope, inject, python, tmp_path):
    subprocess.run([vramscope, "run", "-o", tmp_path / "run", "--", python, HERE / "leak_programs.py", name], check=True, capture_output=True, timeout=300)
    done = subprocess.run([vramscope, "leaks", "--json", tmp_path / "run"], check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    verdicts[name] = answer["verdict"]
    print(name, answer["sentence"])
    if name in LEAKS:
        assert answer["verdict"] == "growing", answer["sentence"]
    else:
        assert answer["verdict"] != "growing", answer["sentence"]
