"""What is said about the examples, against what they do: a list with one tensor per step, and a small training run without any trouble."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def recorded(vramscope, newest_tensorflow, tmp_path_factory):
    def record(name):
        folder = tmp_path_factory.mktemp(name) / "out"
        done = subprocess.run([vramscope, "run", "-o", folder, "--", newest_tensorflow, EXAMPLES / f"{name}.py"], capture_output=True, text=True,
                              timeout=600, env={**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1"})
        assert done.returncode == 0, done.stderr
        trace, = folder.glob("*.vram")
        return trace, done.stderr
    return record


def ask(vramscope, trace, verb, *options):
    return subprocess.check_output([vramscope, verb, *options, trace], text=True)


def test_a_leak_has_one_place_and_one_count(vramscope, recorded):
    trace, last_lines = recorded("leak_losses")
    source = (EXAMPLES / "leak_losses.py").read_text()
    steps = int(re.search(r"range\((\d+)\)", source)[1])                    # one tensor each
    line = source.split("losses.append")[0].count("\n") + 1
    summary, leaks = ask(vramscope, trace, "summary"), ask(vramscope, trace, "leaks")
    said = summary.splitlines()[0]
    assert re.fullmatch(rf"Leak: .*, kept by losses \(leak_losses\.py:{line}\)\.", said), said
    assert leaks.splitlines()[0] == said and f"vramscope: {said} " in last_lines
    assert f"losses holds {steps} tensors" in leaks and f"holds {steps} tensors" in summary
    assert set(re.findall(r"(\d+) tensors", summary + leaks)) == {str(steps)}
    finding = json.loads(ask(vramscope, trace, "summary", "--json"))["findings"]["findings"][0]
    assert set(re.findall(r"leak_losses\.py:(\d+)", " ".join(finding[part] for part in ("title", "cause", "remedy")))) == {str(line)}


def requests_that_grew_the_pool(vramscope, trace):
    """(MiB free, MiB requested), counted by hand from the events."""
    sizes, live, regions, grown, found = {}, 0, 0, False, set()
    for event in map(json.loads, ask(vramscope, trace, "dump", "--jsonl").splitlines()):
        if event["event"] == "region":
            free, grown = regions - live, not event["returned"]
            regions += event["bytes"] if grown else -event["bytes"]
        elif event["event"] == "alloc":
            if grown:
                found.add((round(free / 2**20, 1), round(event["requested"] / 2**20, 1)))
            grown, sizes[event["address"]] = False, event["granted"]
            live += event["granted"]
        elif event["event"] == "free":
            live -= sizes.pop(event["address"], 0)
    return found


def test_a_run_without_trouble_says_what_it_needs(vramscope, recorded):
    trace, last_lines = recorded("demo_keras")
    said = ask(vramscope, trace, "summary").splitlines()[0]
    assert said.startswith("Training needs ") and f"vramscope: {said} " in last_lines
    # At the end nothing is live. Whether a request ran into a hole before depends on the order in which TensorFlow ran its ops.
    fragmentation = ask(vramscope, trace, "fragmentation")
    named = re.match(r"([\d.]+) MiB was free, yet a request for ([\d.]+) MiB did not fit", fragmentation)
    assert named or "Fragmentation cost nothing" in fragmentation
    assert not named or (float(named[1]), float(named[2])) in requests_that_grew_the_pool(vramscope, trace)
    assert "holes" not in ask(vramscope, trace, "ledger", "--at", "end")
