"""Leak verdicts on real TensorFlow programs: none may be misjudged. The confusion table is printed."""
import json
from pathlib import Path

import pytest

from leak_programs import CLEAN, LEAKS

PROGRAMS = Path(__file__).resolve().parent / "leak_programs.py"
verdicts = {}


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    print("\ntruth \\ verdict      growing  not growing  cannot tell")
    for truth, names in (("clean", CLEAN), ("leak", LEAKS)):
        row = [sum(verdicts.get(n) == v for n in names) for v in ("growing", "not growing", "cannot tell")]
        print(f"{truth:18} {row[0]:9} {row[1]:12} {row[2]:12}")


@pytest.mark.parametrize("name", CLEAN + LEAKS)
def test_verdict(name, record, run, vramscope, newest_tensorflow, tmp_path):
    record([newest_tensorflow, PROGRAMS, name])
    answer = json.loads(run([vramscope, "leaks", "--json", tmp_path / "out"]).stdout)
    verdicts[name] = answer["verdict"]
    print(name, answer["sentence"])
    if name in LEAKS:
        assert answer["verdict"] == "growing", answer["sentence"]
    else:
        assert answer["verdict"] != "growing", answer["sentence"]
