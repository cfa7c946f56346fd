"""Every verb in text and JSON on generated traces. UPDATE_GOLDEN=1 writes the expectations anew; read the difference before you commit it."""
import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("VRAMSCOPE_BUILD", HERE.parent.parent / "build"))
BUDGET = """peak = "8MiB"
steady_peak = "64MiB"
growth_per_step = "1KiB"
ooms = 0
[category]
parameters = "1MiB"
[layer]
dense_2 = "1MiB"
"""

CASES = {
    "summary-autotune": ["summary", "autotune"],
    "ledger-clean": ["ledger", "clean"],
    "peak-autotune": ["peak", "autotune"],
    "peak-by-layer": ["peak", "clean", "--by", "layer,category", "--where", "phase:backward or category:parameters", "-n", "4"],
    "peak-at-step": ["peak", "leak", "--at", "step:20", "--by", "op"],
    "steps-warmup": ["steps", "warmup", "--ascii"],
    "steps-found": ["steps", "nomarks", "-n", "4", "--ascii"],
    "steps-cannot-tell": ["steps", "eager"],
    "layers-clean": ["layers", "clean"],
    "leaks-leak": ["leaks", "leak", "--ascii"],
    "leaks-clean": ["leaks", "clean"],
    "leaks-saturating": ["leaks", "saturating", "--ascii"],
    "fragmentation-shapes": ["fragmentation", "shapes"],
    "oom-leak": ["oom", "killed"],
    "oom-none": ["oom", "clean"],
    "diff-shapes": ["diff", "clean", "shapes", "--ascii"],
    "check-broken": ["check", "leak"],
}


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    (folder / "vram.toml").write_text(BUDGET)
    for case in sorted({word for command in CASES.values() for word in command[1:3]}):
        if case in ("clean", "autotune", "leak", "warmup", "nomarks", "eager", "saturating", "shapes", "killed"):
            subprocess.run([BUILD / "tracegen", case, folder / f"{case}.vram", "seed=7"], check=True, capture_output=True)
    return folder


def run(folder, command, *more):
    words = [f"{w}.vram" if (folder / f"{w}.vram").exists() and i in (1, 2) else w for i, w in enumerate(command)]
    if words[0] == "check":
        words += ["--budget", "vram.toml"]
    return subprocess.run([BUILD / "vramscope", *words, *more], cwd=folder, capture_output=True, text=True)


def compare(path, text):
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs; UPDATE_GOLDEN=1 writes it anew"


def stable(text, folder):
    """Without what differs from machine to machine."""
    return text.replace(str(folder), "FOLDER")


def without_start(value):
    if isinstance(value, dict):
        return {k: without_start(v) for k, v in value.items() if k != "start_realtime_us"}
    return [without_start(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CASES)
def test_text(traces, name):
    done = run(traces, CASES[name])
    assert done.returncode == (1 if name == "check-broken" else 0), done.stderr
    assert not done.stderr or "end by itself" in done.stderr or "killed" in done.stderr or "finished" in done.stderr, done.stderr
    compare(HERE / f"{name}.txt", stable(done.stdout, traces))


@pytest.mark.parametrize("name", CASES)
def test_json(traces, name):
    done = run(traces, [w for w in CASES[name] if w != "--ascii"], "--json")
    answer = without_start(json.loads(done.stdout))
    compare(HERE / f"{name}.json", stable(json.dumps(answer, indent=1, sort_keys=True) + "\n", traces))


@pytest.mark.parametrize("verb", ["summary", "ledger", "peak", "steps", "layers", "leaks", "fragmentation", "oom", "diff", "check"])
def test_help_has_an_example(verb):
    done = subprocess.run([BUILD / "vramscope", verb, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert f"vramscope {verb} " in done.stdout


@pytest.mark.parametrize("words, part", [
    (["peak", "nothing.vram"], "nothing.vram"),
    (["peak", "clean", "--by", "colour"], "cannot group by"),
    (["peak", "clean", "--where", "colour:red"], "no field"),
    (["peak", "clean", "--at", "tomorrow"], "is no instant"),
    (["peak", "clean", "--place", "GPU 7"], "there are GPU 0"),
    (["check", "clean", "--budget", "nothing.toml"], "nothing.toml"),
    (["diff", "clean"], "two traces"),
])
def test_errors_are_one_line(traces, words, part):
    words = [f"{w}.vram" if w == "clean" else w for w in words]
    done = subprocess.run([BUILD / "vramscope", *words], cwd=traces, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert part in done.stderr and done.stderr.count("\n") == 1
