"""On a terminal of 80 columns, no table breaks a row: columns go in a fixed order, and the answer names those that went."""
import os
import re
import subprocess

import pytest

from terminal import Terminal
from verbs import OF_ONE_TRACE

CASES = {"train": ["autotune", "steps=24", "layers=6"], "leak": ["leak", "steps=40"], "shapes": ["shapes"], "oom": ["killed"], "layers": ["transformer"],
         "grown": ["grown"], "hostile": ["hostile"], "killed": ["clean", "signal=9"]}
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def traces(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("narrow")
    for name, (case, *settings) in CASES.items():
        subprocess.run([build / "tracegen", case, folder / f"{name}.vram", *settings], check=True, capture_output=True)
    return folder


def lines_of(vramscope, *arguments, columns=80):
    with Terminal([vramscope, *arguments], columns=columns, rows=200) as terminal:
        assert terminal.exit_code() == 0
        return [ESCAPE.sub("", line) for line in terminal.raw.decode().split("\r\n")]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("verb", OF_ONE_TRACE)
def test_every_line_fits(vramscope, traces, verb, name):
    lines = lines_of(vramscope, verb, traces / f"{name}.vram")
    assert any(line.startswith("  ") for line in lines) or len(lines) < 4
    for line in lines:
        assert len(line) <= 80, f"{len(line)} columns: {line}"


def test_every_line_of_a_trace_with_all_that_can_be_said_fits(vramscope, root):
    """Driver, device, host, losses, cut stacks: the sample of the newest format has them all."""
    lines = [line for line in lines_of(vramscope, "summary", root / "tests/traces/v1.3.vram") if not line.startswith("vramscope: ")]  # a message is one line
    for name in ("driver", "GPU 0", "host", "process", "lost", "cut"):
        assert any(line.startswith(f"  {name} ") for line in lines), name
    assert "1 allocations" not in " ".join(lines)
    for line in lines:
        assert len(line) <= 80, f"{len(line)} columns: {line}"


def test_two_runs_side_by_side_fit(vramscope, traces):
    for line in lines_of(vramscope, "diff", traces / "train.vram", traces / "leak.vram"):
        assert len(line) <= 80, line


def heads(lines):
    return next(line for line in lines if "PEAK" in line and line.startswith("  "))


def dropped(lines):
    """What the first table says that it lacks."""
    table = lines[lines.index(heads(lines)) :]
    table = table[: table.index("")] if "" in table else table
    said = " ".join(line.strip() for line in table).partition("Not shown at this width: ")[2]
    return said.partition(".")[0].split(", ") if said else []


def test_columns_go_in_the_stated_order_and_are_named(vramscope, traces):
    wide = lines_of(vramscope, "steps", traces / "train.vram", columns=120)
    narrow = lines_of(vramscope, "steps", traces / "train.vram")
    order = ["BEFORE OPT", "AFTER OPT", "CHURN", "BLOCKS", "ALLOCATED", "SAMPLES", "TIME", "FORWARD", "BACKWARD", "OPTIMIZER", "AFTER", "GROWTH"]
    for kept in ("STEP", "PEAK MiB", "GROWTH"):
        assert kept in heads(narrow)
    gone = dropped(narrow)
    assert gone and gone == order[: len(gone)]
    for head in gone:
        assert f"{head} " not in heads(narrow) and not heads(narrow).endswith(head)
    assert len(dropped(wide)) < len(gone)


def test_a_column_of_zeros_goes_first(vramscope, root):
    """In this trace no layer has gradients at the steady peak, and inputs, which are part of OTHER, hold the most."""
    lines = lines_of(vramscope, "layers", root / "tests/traces/v1.1-reports.vram")
    head = next(line for line in lines if "PARAMETERS" in line)
    assert "OTHER" in head and "GRADIENTS" not in head
    assert "GRADIENTS" in " ".join(lines).partition("Not shown at this width: ")[2]


def test_the_verdict_keeps_its_whole_evidence(vramscope, traces):
    text = " ".join(" ".join(lines_of(vramscope, "oom", traces / "oom.vram")).split())
    wide = " ".join(subprocess.run([vramscope, "oom", traces / "oom.vram"], check=True, capture_output=True, text=True).stdout.split())
    evidence = re.search(r"too big +yes +yes +(live memory.*?) The request", wide).group(1)
    assert sorted(evidence.split()) == sorted(re.search(r"too big yes yes (live memory.*?) The request", text).group(1).split())


def test_piped_output_follows_columns(vramscope, traces):
    """As that of git and ps; watch(1) sets it for the command whose output it shows."""
    def widest(**env):
        done = subprocess.run([vramscope, "oom", traces / "oom.vram"], capture_output=True, text=True, check=True, env={**os.environ, **env})
        return max(map(len, done.stdout.splitlines()))

    assert widest() > 120 and widest(COLUMNS="wide") == widest(COLUMNS="0") == widest()
    assert 60 < widest(COLUMNS="80") <= 80 and 80 < widest(COLUMNS="110") <= 110
    with Terminal([vramscope, "oom", traces / "oom.vram"], columns=110, rows=200, env={**os.environ, "COLUMNS": "70"}) as terminal:
        assert terminal.exit_code() == 0
        assert max(len(ESCAPE.sub("", line)) for line in terminal.raw.decode().split("\r\n")) <= 70
