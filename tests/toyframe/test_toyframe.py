"""A framework that only the tests know registers itself in one file per side, and is recorded, attributed and shown.

capture.cpp is its side in the process, analysis.cpp outside, hooks/framework.py in Python. Nothing else of vramscope knows it. The truth about
its memory is what libtoyframe.so counts.
"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAM = """
import toyframe
weights = [toyframe.parameter(f"{layer}/weight", 50_000) for layer in ("first", "second")]
ring = toyframe.ring(20_000)
for _ in range(8):
    toyframe.train_step()
import vramscope._recorder
assert vramscope._recorder.active().check(b"end") == 1
toyframe.print_counters()
"""
LATE = """
import sys, toyframe
early = toyframe.parameter("early/weight", 4096)
import vramscope
with vramscope.record(sys.argv[1]) as recording:
    weight = toyframe.parameter("first/weight", 50_000)
    for _ in range(3):
        toyframe.train_step()
"""


@pytest.fixture(scope="session")
def installed(build, tmp_path_factory):
    """An installation with this framework in it: the program and the recorder that the build made with it, and the Python side with its folder."""
    made = build / "tests/toyframe"
    if not (made / "vramscope").exists():
        pytest.fail(f"{made}/vramscope is missing; `make build` makes it")
    root = tmp_path_factory.mktemp("toyframe")
    shutil.copytree(HERE.parent.parent / "python/vramscope", root / "python/vramscope", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "python/vramscope/_hooks/toyframe").mkdir()
    shutil.copy(HERE / "hooks/framework.py", root / "python/vramscope/_hooks/toyframe")
    shutil.copytree(HERE / "package", root / "package", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "build").mkdir()
    for name in ("vramscope", "libvramscope_inject.so"):
        shutil.copy(made / name, root / "build")
    shutil.copy(made / "libtoyframe.so", root / "package/toyframe")
    return root


@pytest.fixture(scope="session")
def call(installed):
    def run(*command, **options):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, **options)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def recorded(installed, call):
    """(the folder of the run, what the framework counted)"""
    out = installed / "out"
    (installed / "train.py").write_text(PROGRAM)
    printed = call(installed / "build/vramscope", "run", "-q", "-o", out, "--", sys.executable, "train.py", cwd=installed,
                   env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(installed / "package")})
    return out, json.loads(printed)


@pytest.fixture(scope="session")
def ask(installed, call, recorded):
    """ask(verb, *options) -> the verb's JSON about the recorded run."""
    return lambda verb, *options: json.loads(call(installed / "build/vramscope", verb, recorded[0], "--json", *options))


def test_what_it_allocated_is_recorded_to_the_byte(ask, recorded):
    (pool,) = ask("summary")["pools"]
    assert (pool["name"], pool["framework"]) == ("toy_pool", "toyframe")
    assert (pool["allocs"], pool["peak_bytes"], pool["end_bytes"]) == tuple(recorded[1][key] for key in ("allocations", "peak", "in_use"))


def test_its_blocks_are_what_its_own_rules_say(ask):
    category = {tuple(group["keys"])[0]: group["bytes"] for group in ask("peak", "--by", "category")["groups"]}
    assert category == {"parameters": 100_000, "inputs": 20_000, "activations": 2_000, "gradients": 6_000}
    layer = {tuple(group["keys"])[0]: group["bytes"] for group in ask("peak", "--by", "layer")["groups"]}
    assert layer["first"] == layer["second"] == 54_000


def test_its_steps_are_those_that_its_hooks_marked(ask):
    assert len(ask("steps")["steps"]["steps"]) == 8


def test_its_own_counters_are_recorded_beside_ours(ask, installed, call, recorded):
    events = [json.loads(line) for line in call(installed / "build/vramscope", "dump", recorded[0], "--jsonl").splitlines()]
    (counters,) = [event for event in events if event["event"] == "stats"]
    assert {"in_use": counters["in_use"], "peak": counters["peak"], "allocations": counters["allocs"]} == recorded[1]
    assert ask("summary")["overview"]["checked"] == "Peak and live bytes of toy_pool equal the allocator's own, to the byte"


def test_it_is_shown_by_summary(installed, call, recorded):
    text = call(installed / "build/vramscope", "summary", recorded[0])
    assert "toy_pool" in text and "toyframe" in text and "without the Python hooks" not in text
    assert "Steps 2 to 8 are alike" in text and "differ" not in text


def test_its_version_and_hooks_are_in_the_trace(ask):
    settings = ask("summary")["settings"]
    assert settings["toyframe.version"] == "1.5" and settings["python_side.toyframe"] == "on"


def test_doctor_finds_it(installed, call):
    done = subprocess.run([installed / "build/vramscope", "doctor", "--json", "--python", sys.executable], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(installed / "package")})
    (finding,) = [each for each in json.loads(done.stdout)["findings"] if each["what"] == "ToyFrame"]
    assert finding["state"] == "ok" and finding["hooks"] == ["toy_allocate", "toy_release"]


def test_it_is_recorded_from_the_middle_of_a_program(installed, call):
    out = installed / "late"
    (installed / "late.py").write_text(LATE)
    call(sys.executable, installed / "late.py", out, cwd=installed,
         env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{installed / 'package'}:{installed / 'python'}"})
    (pool,) = json.loads(call(installed / "build/vramscope", "summary", out, "--json"))["pools"]
    assert (pool["name"], pool["allocs"], pool["peak_bytes"]) == ("toy_pool", 1 + 3 * 4, 50_000 + 8_000)


@pytest.mark.parametrize("moment, printed", [("constructor", "allocated"), ("dlerror", "a file that does not exist")])
def test_the_first_allocation_leaves_the_dynamic_linker_alone(installed, call, tmp_path, moment, printed):
    """It may come from a thread for which a library's constructor waits, or before the program has asked dlerror()."""
    call("gcc", "-O1", "-rdynamic", "-o", tmp_path / "victim", HERE / "loader_victim.c", "-ldl", "-lpthread")
    call("gcc", "-O1", "-shared", "-fPIC", "-o", tmp_path / "library.so", HERE / "loader_library.c")
    command = (tmp_path / "victim", installed / "package/toyframe/libtoyframe.so", moment, tmp_path / "library.so")
    alone = call(*command)
    assert printed in alone
    out = tmp_path / "out"
    assert call("timeout", "60", installed / "build/vramscope", "run", "-q", "-o", out, "--", *command) == alone
    assert json.loads(call(installed / "build/vramscope", "summary", out, "--json"))["pools"][0]["allocs"] == 1


def test_the_shipped_program_does_not_know_it(vramscope, inject, call):
    """Otherwise these tests would pass for another reason."""
    assert b"toyframe" not in Path(vramscope).read_bytes() and b"toyframe" not in Path(inject).read_bytes()
