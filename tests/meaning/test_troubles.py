"""What is said about programs with one known trouble or none: nothing wrong, and hardly ever nothing. And what a remedy is said to save, against the
same program after the remedy."""
import collections
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import verdicts

HERE = Path(__file__).resolve().parent
MOST_UNTOLD = 0.1           # of the programs may get no answer
SAVING_WITHIN = 0.1


@pytest.fixture(scope="module")
def recorded(vramscope, tmp_path_factory):
    """recorded(python, module) -> [(what is meant, trace)], in the order of the module."""

    def record(python, module):
        folder = tmp_path_factory.mktemp(module) / "out"
        done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", "--", python, HERE / f"{module}.py"], capture_output=True, text=True, timeout=1200,
                              env={**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_ENABLE_ONEDNN_OPTS": "0", "OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        layers = {line["program"]: line["layers"] for line in lines if "program" in line}
        programs = [{**line, "layers": layers.get(line["name"], [])} for line in lines if "pid" in line]
        assert programs, done.stderr
        traces = {each["name"]: next(iter(folder.glob(f"*-{each['pid']}-*.vram")), None) for each in programs}
        assert all(traces.values()), [name for name, trace in traces.items() if trace is None]
        return [(each, traces[each["name"]]) for each in programs]

    return record


def judge_all(vramscope, programs, framework, record_property):
    scores, wrong, savings = collections.Counter(), [], []
    traces = {meant["name"]: trace for meant, trace in programs}
    meant_by_name = {meant["name"]: meant for meant, _ in programs}
    for meant, trace in programs:
        if meant["fixes"]:
            promised, saved = verdicts.saving_of(vramscope, traces[meant["fixes"]], trace, meant_by_name[meant["fixes"]])
            savings.append((meant["fixes"], promised, saved))
            continue
        score, said = verdicts.judge(vramscope, trace, meant, framework)
        scores[meant["kind"], score] += 1
        if score != "right":
            wrong.append(f"{meant['name']}: {score}: {said}")
    record_property("troubles", [framework, [[*key, count] for key, count in scores.items()]])
    record_property("savings", [framework, savings])
    off = [f"{name}: {promised:,} promised, {saved:,} saved" for name, promised, saved in savings if abs(promised - saved) > SAVING_WITHIN * saved]
    untold = sum(count for (_, score), count in scores.items() if score == "cannot tell")
    report = "\n".join(wrong + off)
    assert not any(score == "wrong" for _, score in scores), report
    assert untold <= MOST_UNTOLD * sum(scores.values()), report
    assert not off, report


TORCH = ("torch_leaks", "torch_troubles", "torch_tutorials", "torch_methods", "torch_objectives", "torch_recipes")
TENSORFLOW = ("tf_leaks", "tf_troubles", "tf_tutorials", "tf_methods", "tf_objectives", "tf_recipes")


def test_enough_programs_and_remedies_are_tried():
    """By their sources: what is promised must be compared with the fixed program in at least 15 of them (each test compares all of its own)."""
    sources = [(HERE / f"{module}.py").read_text() for module in TORCH + TENSORFLOW]
    assert sum(len(re.findall(r"^@program\(", source, re.MULTILINE)) for source in sources) >= 80
    assert sum(len(re.findall(r"^@program\(.*\bfixed=", source, re.MULTILINE)) for source in sources) >= 15


@pytest.mark.parametrize("module", TORCH)
def test_pytorch(module, vramscope, recorded, torch_python, record_property):
    judge_all(vramscope, recorded(torch_python, module), "torch", record_property)


@pytest.mark.parametrize("module", TENSORFLOW)
def test_tensorflow(module, vramscope, recorded, newest_tensorflow, record_property):
    judge_all(vramscope, recorded(newest_tensorflow, module), "tf", record_property)
