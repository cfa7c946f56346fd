"""Leak verdicts on real TensorFlow programs: none may be misjudged. The confusion table is printed at the end of the run (tests/conftest.py)."""
import json
from pathlib import Path

import pytest

from leak_programs import CLEAN, LEAKS

PROGRAMS = Path(__file__).resolve().parent / "leak_programs.py"
# What keeps it, tensors or variables, where the program has a name for that.
HELD = {"new_variable_each_step": "kept holds", "dictionary_by_step": "by_step holds"}


def test_half_of_them_are_clean():
    assert len(CLEAN) + len(LEAKS) >= 20 and len(CLEAN) == len(LEAKS)


@pytest.mark.parametrize("name", CLEAN + LEAKS)
def test_verdict(name, record, run, vramscope, newest_tensorflow, tmp_path, record_property):
    record([newest_tensorflow, PROGRAMS, name])
    answer = json.loads(run([vramscope, "leaks", "--json", tmp_path / "out"]).stdout)
    record_property("leak verdict", ["leak" if name in LEAKS else "clean", answer["verdict"]])
    print(name, answer["sentence"])
    if name in LEAKS:
        assert answer["verdict"] == "growing", answer["sentence"]
        assert HELD.get(name, "") in json.dumps(answer), answer
    else:
        assert answer["verdict"] != "growing", answer["sentence"]


def test_a_leak_is_seen_where_steps_are_found(record, run, vramscope, newest_tensorflow, tmp_path):
    """The program ends as programs do: it frees all of it at exit, after the last step."""
    record([newest_tensorflow, PROGRAMS, "function_loop_keeps_loss"], ["--no-python"])
    answer = json.loads(run([vramscope, "leaks", "--json", tmp_path / "out"]).stdout)
    assert answer["verdict"] == "growing", answer["sentence"]
