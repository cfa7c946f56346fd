"""Out of memory in real TensorFlow programs: the cause, and "would fit without it" against the same program without it.

The CPU's pool is the allocator of the GPU, with a limit. Another process on the card cannot be had here; tests/analyze has a generated case."""
import json
import os
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent / "oom_programs.py"
RAM_MIB = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


@pytest.fixture
def oom(record, vramscope, run, newest_tensorflow, tmp_path):
    """oom(name, value, limit) -> (served, the answer of `oom`)."""

    def call(name, value, limit=64):
        said = record([newest_tensorflow, PROGRAM, name, str(value)], env={"TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit)}).said
        return said["served"], json.loads(run([vramscope, "oom", "--json", tmp_path / "out"]).stdout)

    return call


@pytest.fixture
def without(run, newest_tensorflow):
    """without(name, value, limit) -> served. The same program, the cause taken away."""

    def call(name, value, limit=64):
        done = run([newest_tensorflow, PROGRAM, name, str(value)], env={**os.environ, "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit)})
        return json.loads(done.stdout.splitlines()[-1])["served"]

    return call


CASES = {  # verdict: what fails, what the same is without the cause
    "leak": (("leak", 1.5), ("leak", 0)),
    "fragmentation": (("fragmentation", 1), ("fragmentation", 0)),
    "spike": (("spike", 15), ("spike", 0)),
    "pool limit": (("request", 80), ("request", 80, 256)),
}


@pytest.mark.parametrize("verdict", CASES)
def test_cause(verdict, oom, without):
    failing, fixed = CASES[verdict]
    served, answer = oom(*failing)
    assert not served
    event = answer["events"][-1]
    print(answer["sentence"])
    assert event["verdict"] == verdict, answer
    cause = next(c for c in event["causes"] if c["cause"] == verdict)
    assert cause["holds"] and cause["would_fit"] == "yes"
    assert without(*fixed)


def test_really_too_big(oom):
    if Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "1":
        pytest.skip("this machine promises memory that it does not have")
    served, answer = oom("request", 2 * RAM_MIB, 4 * RAM_MIB)
    assert not served
    event = answer["events"][-1]
    assert event["verdict"] == "too big", answer
    # No cause but the size itself would have made it fit.
    assert {c["cause"] for c in event["causes"] if c["would_fit"] == "yes"} == {"too big"}
    assert event["short_by"] > RAM_MIB << 19
