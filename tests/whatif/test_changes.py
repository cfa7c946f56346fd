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
    assert changed["changes"] and changed["confidence"] == "medium" and changed["exact"] is None


def test_smaller_parts_need_less(record_torch, vramscope):
    trace = record_torch("transformer", 16)
    assert ask(vramscope, trace, "--accumulate", "4")["live"] < ask(vramscope, trace)["live"]


def test_python_gives_the_same_answers(record_torch, vramscope, root, build):
    runs = [str(record_torch("transformer", 8)), str(record_torch("transformer", 16))]
    program = "import json, sys, vramscope; print(json.dumps([vramscope.fit(*sys.argv[1:], on='2GiB', batch=64), vramscope.open(sys.argv[1]).whatif()]))"
    said = json.loads(subprocess.check_output([sys.executable, "-c", program, *runs], text=True, env={
        **os.environ, "PYTHONPATH": str(root / "python"), "VRAMSCOPE_BUILD": str(build)}))
    fit = subprocess.check_output([vramscope, "fit", *runs, "--on", "2GiB", "--batch", "64", "--json"], text=True)
    assert said == [json.loads(fit), json.loads(subprocess.check_output([vramscope, "whatif", runs[0], "--json"], text=True))]
