"""Forged and damaged traces are asked everything that the analysis answers: tests/analyze/ask_everything.h."""
import json


def test_every_method_is_asked(root):
    methods = json.loads((root / "schema/answers/schema.json").read_text())["methods"]
    asked = (root / "tests/analyze/ask_everything.h").read_text()
    assert [method for method in methods if f"(e.{method}(" not in asked] == []
