"""The runner of the tiers: what it prints is short, has no empty lines, and ends with the runners' own counts."""
import sys

import pytest
import run_tests
from run_tests import Step

PYTEST = r"^=+ .*\b(passed|failed|error|skipped)\b.* in .*=+$"


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """run(steps, *arguments) -> (exit code, lines printed); steps are (tier, name, output, exit code, pattern of the count)."""

    def call(steps, *arguments):
        made = [Step(tier, name, [sys.executable, "-c", f"print({output!r}); raise SystemExit({code})"], count)
                for tier, name, output, code, count in steps]
        monkeypatch.setattr(run_tests, "ROOT", tmp_path)
        monkeypatch.setattr(run_tests, "LOGS", tmp_path / "log")
        monkeypatch.setattr(run_tests, "steps", lambda: made)
        monkeypatch.setattr(sys, "argv", ["run_tests.py", *arguments])
        code = run_tests.main()
        return code, capsys.readouterr().out.splitlines()

    return call


def test_it_ends_with_the_counts_of_the_runners(run):
    code, lines = run([
        ("check", "unit", "100% tests passed, 0 tests failed out of 345\n\n", 0, r"tests passed, \d+ tests? failed out of \d+"),
        ("check", "golden", "..\n\n===== 12 passed, 1 skipped in 3.50s =====", 0, PYTEST),
        ("frameworks", "frameworks", "===== 30 passed, 2 warnings in 100.25s (0:01:40) =====", 0, PYTEST)])
    assert code == 0
    assert lines[-2:] == ["100% tests passed, 0 tests failed out of 345", "===== 42 passed, 1 skipped, 2 warnings in 103.75s ====="]
    assert all(line.strip() for line in lines)


def test_a_failure_is_shown_and_the_rest_still_runs(run):
    code, lines = run([("check", "text", "a.cpp:1: wrong\n\n\n", 3, ""), ("check", "unit", "fine", 0, "")])
    assert code == 1
    assert "a.cpp:1: wrong" in lines and "fine" not in lines
    assert lines[-1].startswith("==> 1 of 2 steps passed") and lines[-1].endswith("failed: text")
    assert all(line.strip() for line in lines)


def test_failed_tests_are_counted(run):
    code, lines = run([("check", "golden", "===== 1 failed, 2 passed, 1 error in 3.00s =====", 1, PYTEST),
                       ("recording", "recording", "===== 2 failed in 1.00s =====", 1, PYTEST)])
    assert code == 1 and lines[-1] == "===== 3 failed, 2 passed, 1 errors in 4.00s ====="


@pytest.mark.parametrize("arguments, ran", [
    ([], ["a", "b", "c"]), (["--tier", "check"], ["a"]), (["--tier", "frameworks"], ["b"]), (["--only", "c"], ["c"]), (["--presubmit"], ["a", "b", "c", "d"])])
def test_tiers(run, arguments, ran):
    tiers = [("check", "a"), ("frameworks", "b"), ("depth", "c"), ("presubmit", "d")]
    _, lines = run([(tier, name, "", 0, "") for tier, name in tiers], *arguments)
    assert [line.split(": ")[1] for line in lines if line.startswith("==> ") and line.endswith(" s)")] == ran


def test_every_folder_of_tests_is_in_a_tier():
    folders = {f"tests/{path.parent.name}" for path in (run_tests.ROOT / "tests").glob("*/test_*.py")} | {"python/tests"}
    named = {word for step in run_tests.steps() for word in step.command}
    assert folders - named == {"tests/gpu"}


@pytest.mark.parametrize("output, said", [
    (b"12/345 Test #12: a ....", ", 12 of 345 tests"), (b"..... [ 7/ 12]\n", ""), (b"....  [ 30/512]\n...", ", 30 of 512 tests"), (b"building", "")])
def test_the_progress_line(tmp_path, output, said):
    (tmp_path / "log").write_bytes(output)
    line = run_tests.Progress(9).line(Step("check", "unit", []), tmp_path / "log")
    assert line == f"[check] 0 of 9 steps done, unit{said}, 0:00"
