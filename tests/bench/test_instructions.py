"""The hot path of the recorder keeps to its budget of instructions; unlike time, they do not depend on who else uses the machine."""
import json
import sys

import pytest


@pytest.fixture
def bench(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "bench"))
    from measure import jax_execute, micro, tree
    return micro, tree, jax_execute


def test_a_recorded_event_keeps_to_its_instructions(bench, inject, root):
    micro, tree, _ = bench
    budget = json.loads((root / "bench/budgets.json").read_text())["tf_pair_instructions"]["budget"]
    counted = micro.pair_instructions(tree.Tree())
    assert budget / 2 < counted <= budget  # far below: nothing was recorded, or the budget should be lowered


@pytest.mark.parametrize("name, state", [("jax_execute_instructions", "kept"), ("jax_execute_moving_instructions", "moving")])
def test_a_recorded_execution_of_jax_keeps_to_its_instructions(bench, inject, root, name, state):
    _, tree, jax_execute = bench
    budget = json.loads((root / "bench/budgets.json").read_text())[name]["budget"]
    counted = jax_execute.execution_instructions(tree.Tree(), state)
    assert budget / 2 < counted <= budget  # far below: nothing was recorded, or the budget should be lowered


def test_a_budget_is_exceeded_only_beyond_the_confidence_interval(bench):
    Measured = bench[1].Measured
    assert [Measured(value).verdict(1) for value in (0.9, 1.0, 1.1)] == ["ok", "ok", "EXCEEDED"]
    assert [Measured(*value).verdict(1) for value in ((1.5, 1.2, 1.8), (1.5, 0.8, 2.2), (0.5, 0.1, 0.9))] == ["EXCEEDED", "unclear", "ok"]


def test_the_runner_fails_when_a_budget_is_exceeded(root, tmp_path, run):
    for part in ("run.py", "measure/tree.py", "measure/__init__.py"):
        (tmp_path / "bench" / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bench" / part).write_text((root / "bench" / part).read_text())
    (tmp_path / "bench/measure/made_up.py").write_text(
        '"""Made up."""\nfrom measure.tree import Measured\nNAMES = ["x"]\ndef measure(tree):\n    return {"x": Measured(5.0)}\n')

    def bench(budget, code):
        (tmp_path / "bench/budgets.json").write_text(json.dumps({"x": {"what": "made up", "budget": budget, "unit": "ns"}}))
        return run([sys.executable, tmp_path / "bench/run.py"], code=code).stdout

    assert "ok" in bench(5, 0)
    assert "EXCEEDED" in bench(4.9, 1)
