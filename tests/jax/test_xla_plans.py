"""`run --xla` and `xla` with JAX: what fills the block of a program's temporaries, by the scopes that the program has named, and by line."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture
def parts_of(vramscope, run, jax_python, tmp_path):
    """parts_of("mlp") -> (the parts of the largest block, its plan as XLA wrote it)"""
    def call(model):
        folder = tmp_path / "out"
        run([vramscope, "run", "--xla", "-o", folder, "--quiet", "--", jax_python, HERE / "models.py", model, "2"],
            env={**os.environ, "JAX_PLATFORMS": "cpu"})
        blocks = json.loads(subprocess.check_output([vramscope, "xla", "--json", folder]))["blocks"]
        block = max((block for block in blocks if block["module"] == "jit_train_step"), key=lambda block: block["bytes"])
        parts = block["parts"]
        assert block["bytes"] == sum(part["bytes"] for part in parts) + block["unused"]
        assert block["instructions"] > 15 and 0 < block["fullest"] < block["instructions"]
        assert all(part["from"] <= block["fullest"] <= part["to"] for part in parts)
        values, = folder.glob("xla-*/*jit_train_step*buffer-assignment-values.txt")
        return parts, values.read_text()

    return call


def share(parts, holds):
    return sum(part["bytes"] for part in parts if holds(part)) / sum(part["bytes"] for part in parts)


def pass_by_name(plan, instruction):
    """Which pass XLA's own name of the instruction says."""
    name = re.search(rf"%{re.escape(instruction)} = .*?op_name=\"([^\"]*)\"", plan)
    return None if name is None else "backward" if "transpose(" in name.group(1) else "forward" if "jvp(" in name.group(1) else "other"


def assert_categories(parts, plan):
    assert share(parts, lambda part: part["category"]) >= 0.95, parts
    wanted = {"activations": "forward", "gradients": "backward", "activation gradients": "backward"}
    for part in parts:
        if part["category"] in wanted and (said := pass_by_name(plan, part["instruction"])):
            assert wanted[part["category"]] == said, part


def test_temporaries_have_layers_and_lifetimes(parts_of):
    parts, plan = parts_of("mlp")
    known = [part for part in parts if part["layer"]]
    assert {part["layer"] for part in known} <= {f"dense_{i}" for i in range(6)}
    assert share(parts, lambda part: part["layer"]) >= 0.9, parts
    assert_categories(parts, plan)
    # Each layer keeps its result for the backward pass.
    kept = {part["layer"] for part in parts if part["category"] == "activations" and part["bytes"] >= 512 * 1024}
    assert len(kept) >= 4, parts


def test_flax_modules_are_layers(parts_of):
    parts, plan = parts_of("flax")
    assert share(parts, lambda part: part["layer"] or part["line"]) >= 0.9, parts
    named = {part["layer"].split("/")[1] for part in parts if part["layer"].startswith("Transformer/")}
    assert named == {f"Block_{i}" for i in range(4)}, parts
    assert_categories(parts, plan)


def test_without_scopes_the_line_tells(parts_of):
    parts, plan = parts_of("nnx")
    lines = {text.split("# nnx, ")[1]: f"models.py:{number}" for number, text in enumerate((HERE / "models.py").read_text().splitlines(), 1)
             if "# nnx, " in text}
    # Copies of parameters have no line, but their names.
    assert share(parts, lambda part: part["line"].startswith("models.py:") or part["layer"] in ("first", "second")) >= 0.9, parts
    assert share(parts, lambda part: part["line"].startswith("models.py:")) >= 0.8, parts
    assert {part["line"] for part in parts if part["category"] == "activations"} <= set(lines.values()), (lines, parts)
    assert lines["tanh"] in {part["line"] for part in parts} or lines["first"] in {part["line"] for part in parts}
    assert_categories(parts, plan)
