"""Changes of the program as `whatif` computes them, against recordings of the changed program; and the same answers in Python."""
import json
import os
import subprocess
import sys

import pytest


def ask(vramscope, trace, *options):
    return json.loads(subprocess.check_output([vramscope, "whatif", trace, "--allocator", "recorded", *options, "--json"], text=True))


@pytest.mark.parametrize("before, after, option", [([], ["SGD"], "sgd"), (["SGD"], [], "adamw")])
def test_another_optimizer(record_torch, vramscope, before, after, option):
    changed = ask(vramscope, record_torch("transformer", 16, *before), "--optimizer", option)
    truth = ask(vramscope, record_torch("transformer", 16, *after))
    assert abs(changed["live"] / truth["live"] - 1) <= 0.03, (changed["live"], truth["live"])
    assert changed["rows"][0]["reserved"] == truth["rows"][0]["reserved"]
    assert changed["changes"] and changed["confidence"] == "high" and changed["exact"] is None


@pytest.mark.parametrize("before, after, option", [(["SGD"], [], "adamw"), ([], ["momentum"], "momentum")])
def test_an_optimizer_where_the_update_is_the_peak(record_torch, vramscope, before, after, option):
    """A large model with a small batch: what an update computes on its way decides, and is not known. High confidence means within 3 %."""
    changed = ask(vramscope, record_torch("dense", 8, *before), "--optimizer", option)
    truth = ask(vramscope, record_torch("dense", 8, *after))
    assert changed["confidence"] == "low" or abs(changed["live"] / truth["live"] - 1) <= 0.03, (changed["live"], truth["live"])


@pytest.mark.parametrize("option, value, error", [("accumulate", "4", 0.01), ("checkpoint", "layers.0,layers.1", 0.06)])
def test_parts_and_recomputation_in_pytorch(record_torch, vramscope, option, value, error):
    plain = record_torch("transformer", 16)
    changed = ask(vramscope, plain, f"--{option}", value)
    truth = ask(vramscope, record_torch("transformer", 16, f"{option}={value}"))
    assert abs(changed["live"] / truth["live"] - 1) <= error, (changed["live"], truth["live"])
    assert changed["live"] < 0.95 * ask(vramscope, plain)["live"] and changed["confidence"] == "low"


def test_parts_in_keras_need_accumulators_and_averages(record_tensorflow, vramscope):
    """The model is larger than its activations: here, accumulation needs more."""
    plain, _ = record_tensorflow("dense", 16, "eager")
    changed = ask(vramscope, plain, "--accumulate", "4")
    truth = ask(vramscope, record_tensorflow("dense", 16, "eager", "accumulate=4")[0])
    assert abs(changed["live"] / truth["live"] - 1) <= 0.03, (changed["live"], truth["live"])
    assert changed["live"] > ask(vramscope, plain)["live"] and changed["confidence"] == "high"


def test_python_gives_the_same_answers(record_torch, vramscope, root, build):
    runs = [str(record_torch("transformer", 8)), str(record_torch("transformer", 16))]
    program = "import json, sys, vramscope; print(json.dumps([vramscope.fit(*sys.argv[1:], on='2GiB', batch=64), vramscope.open(sys.argv[1]).whatif()]))"
    said = json.loads(subprocess.check_output([sys.executable, "-c", program, *runs], text=True, env={
        **os.environ, "PYTHONPATH": str(root / "python"), "VRAMSCOPE_BUILD": str(build)}))
    fit = subprocess.check_output([vramscope, "fit", *runs, "--on", "2GiB", "--batch", "64", "--json"], text=True)
    assert said == [json.loads(fit), json.loads(subprocess.check_output([vramscope, "whatif", runs[0], "--json"], text=True))]
