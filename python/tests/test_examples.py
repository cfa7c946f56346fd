"""Every example runs and shows what it says; `vramscope summary` names a planted fault first, also where it was moved and resized."""
import json
import re
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def numbers(text, pattern):
    found = re.search(pattern, text)
    assert found, f"{pattern} is not in\n{text}"
    return [float(group) for group in found.groups()]


# What each example prints, as a check of the numbers in it.
def keras_fit(out):
    peak, parameters = numbers(out, r"was ([\d.]+) MiB; the parameters are only ([\d.]+) MiB")
    assert peak > 5 * parameters


def custom_loop(out):
    forward, backward, between, peak = numbers(out, r"step 8: after forward +([\d.]+) MiB, after backward +([\d.]+) MiB, between steps +"
                                                    r"([\d.]+) MiB, peak +([\d.]+)")
    assert between < peak and forward <= peak and backward <= peak


def tf1_graph(out):
    assert numbers(out, r"4 MiB are alive: ([\d.]+) MiB")[0] >= 8
    low, high, readings = numbers(out, r"saw between ([\d.]+) and ([\d.]+) MiB in (\d+) readings")
    assert low < 1 and high >= 4 and readings > 10


def compare_models(out):
    peaks = dict(re.findall(r"^(wide|narrow|wide, strided) +([\d.]+) MiB", out, re.MULTILINE))
    assert float(peaks["wide"]) > float(peaks["narrow"]) and float(peaks["wide"]) > float(peaks["wide, strided"])


def leak_losses(out):
    first, second = (numbers(out, rf"step {n}: ([\d.]+) MiB")[0] for n in (20, 60))
    assert second - first >= 0.9 * 40 * 512 * 16 * 4 / 2**20            # what else is alive differs from step to step
    assert "losses[59], global of __main__" in out


def persistent_tape(out):
    ordinary, kept = numbers(out, r"ordinary tape ([\d.]+) MiB, with a persistent one ([\d.]+)")
    assert ordinary < 20, "parameters and gradients are 11 MiB: recording must not keep anything alive"
    assert kept - ordinary >= 12, "six layers of 1024 x 512 float32"


def graph_construction(out):
    before, built, peak, after = numbers(out, r"before ([\d.]+) MiB, after tracing \d+ ops ([\d.]+) MiB, peak while it ran ([\d.]+) MiB, "
                                              r"afterwards ([\d.]+)")
    assert built - before < 0.1 and peak > 1 and after < 0.1


def constant_or_dataset(out):
    assert numbers(out, r"tf.data +keeps +([\d.]+)")[0] < 1 and numbers(out, r"constant +keeps +([\d.]+)")[0] >= 8


def float64(out):
    # Twice the bytes; a block may be up to twice its request, so the peak is not exactly twice.
    assert 1.8 < numbers(out, r": ([\d.]+) times as much")[0] < 2.5


def mixed_precision(out):
    single, mixed = numbers(out, r"float32 ([\d.]+) MiB, mixed_bfloat16 ([\d.]+) MiB")
    assert mixed < 0.85 * single


def eager_or_function(out):
    eager, function = numbers(out, r"eager ([\d.]+) MiB, tf.function ([\d.]+)")
    assert eager > function


def batch_size_sweep(out):
    peak, guess = numbers(out, r"batch  256: peak +([\d.]+) MiB, predicted from 32 and 64: +([\d.]+)")
    assert abs(peak - guess) < 0.3 * peak


def gradient_accumulation(out):
    once, parts = numbers(out, r"at once ([\d.]+) MiB, in four parts ([\d.]+)")
    assert parts < 0.6 * once


def retracing(out):
    assert "40 traces in 40 steps" in out


def out_of_memory(out):
    used, limit = numbers(out, r"(\d+) MiB in use of (\d+) MiB")
    assert limit == 96 and used > 80 and "OOM when allocating" in out and "kept[0], global of __main__" in out


CHECKS = [keras_fit, custom_loop, tf1_graph, compare_models, leak_losses, persistent_tape, graph_construction, constant_or_dataset, float64,
          mixed_precision, eager_or_function, batch_size_sweep, gradient_accumulation, retracing, out_of_memory]


# Examples with a planted fault: what `vramscope summary` says first about each, and three variants of it.
FAULTS = {
    "leak_losses": ("held-tensors", [
        [("return each", "return model.layers[0](x)")],
        [("Dense(16)", "Dense(24)"), ("[512, 16]", "[512, 24]")],
        [("[512,", "[384,"), ("losses", "history")]]),
    "persistent_tape": ("persistent-tape", [
        [("Dense(512,", "Dense(384,")], [("range(6)", "range(4)")], [("[1024, 128]", "[768, 128]"), ("[1024, 4]", "[768, 4]")]]),
    "constant_or_dataset": ("baked-constant", [[("8192, 256", "9216, 256")], [("8192, 256", "4096, 128")], [("[WIDTH, 16]", "[WIDTH, 32]")]]),
    "float64": ("float64", [
        [("(256, 1024)", "(256, 1280)"), ("(1024, 8)", "(1280, 8)")], [("(1024, 8)", "(1024, 16)")], [("size=(1024, 256)", "size=(512, 256)")]]),
    "retracing": ("retrace", [[("[64, 256]", "[32, 256]")], [("range(40)", "range(24)")], [("step", "train")]]),
    "out_of_memory": ("oom", [
        [("[4, 1024, 1024]", "[3, 1024, 1024]")], [("[4, 1024, 1024]", "[2, 1024, 2048]")], [('"96"', '"80"')]]),
}


def test_every_example_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} - {"demo_keras"} >= {check.__name__ for check in CHECKS}
    assert not {path.stem for path in EXAMPLES.glob("*.py")} - {"demo_keras"} - {check.__name__ for check in CHECKS} - OTHERS


# Tested with their frameworks.
OTHERS = {path.stem for path in EXAMPLES.glob("*.py") if "import torch" in path.read_text() or "import jax" in path.read_text()}


@pytest.mark.parametrize("check", [check for check in CHECKS if check.__name__ not in FAULTS], ids=lambda check: check.__name__)
def test_example(run_python, python, check):
    check(run_python(python, EXAMPLES / f"{check.__name__}.py").stdout)


def variant(source, changes, number):
    """The same fault further down in the file, in another layer or of another size; number 0 is the example as it is."""
    if number == 0:
        return source
    for old, new in changes[number - 1]:
        assert old in source, old
        source = source.replace(old, new)
    lines = source.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("import ") and line != "import os")
    lines[first:first] = [f"# moved down by {7 * number} lines"] * (7 * number)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("name", list(FAULTS))
def test_summary_names_a_planted_fault_first(record_python, python, vramscope, name, number):
    finding, changes = FAULTS[name]
    source = variant((EXAMPLES / f"{name}.py").read_text(), changes, number)
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "# the defect" in text)
    trace, out = record_python(python, source, code=1 if name == "out_of_memory" else 0)
    if number == 0:
        globals()[name](out)
    first = json.loads(subprocess.check_output([vramscope, "summary", "--json", trace]))["findings"]["findings"][0]
    assert first["id"] == finding and re.search(rf"\bscript\.py:{line}\b", first["title"]), first
    assert f"  1. {first['title']}" in subprocess.check_output([vramscope, "summary", trace], text=True)
    if name == "constant_or_dataset":                   # the bytes are those of the array
        rows, width = map(int, re.search(r"ROWS, WIDTH, BATCH = (\d+), (\d+)", source).groups())
        assert first["at_stake"] == rows * width * 4


def test_no_fault_is_reported_where_there_is_none(run_python, python):
    recorded = run_python(python, EXAMPLES / "custom_loop.py", record=True).recorded
    descriptions = {"variable_op", "traced_graph", "built_layers", "dataset_stage", "stage_buffer"}      # of every program
    assert not [report for report in recorded.reports if report.event not in descriptions]


def test_the_demo_trains_unmodified(run_python, python):
    recorded = run_python(python, EXAMPLES / "demo_keras.py", record=True).recorded
    assert [m.number for m in recorded.marks_of("step") if m.edge == "begin"] == list(range(1, 61))
