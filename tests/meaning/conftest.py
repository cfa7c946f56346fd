"""Recording programs that say what their memory is for, and the table of all scores at the end."""
import collections
import os
from pathlib import Path

import pytest

import score
import tf_truth
import xla_truth

HERE = Path(__file__).resolve().parent


@pytest.fixture
def scored(vramscope, run, tmp_path, record_property):
    """scored(python, "torch_programs.py", "cpu", ["mlp", "cnn"]) -> {program: (matrix, wrong blocks, what cannot be)}: see score.py."""

    def call(python, program, mode, names, options=()):
        folder, claims = tmp_path / "out", tmp_path / "claims"
        claims.mkdir()
        done = run([vramscope, "run", "-o", folder, "--quiet", *options, "--", python, HERE / program, mode, *names],
                   env={**os.environ, "VRAMSCOPE_TEST_CLAIMS": str(claims), "TF_CPU_ALLOCATOR_USE_BFC": "1"})
        try:
            results = score.as_recorded(vramscope, folder, claims, done.stdout, oracle_for(folder, mode))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{done.stderr}") from error
        assert list(results) == list(names)
        for name, (matrix, *_) in results.items():
            print(f"{name}\n{score.as_text(matrix)}")
        record_property("score", [(program.partition("_")[0], f"{mode} {name}", [[*key, size] for key, size in matrix.items()])
                                  for name, (matrix, *_) in results.items()])
        return results

    return call


def oracle_for(folder, mode):
    def accepted_for(name, said):
        if mode == "xla":
            return xla_truth.accepted([plans for plans in folder.rglob(name) if plans.is_dir()])
        return tf_truth.accepted(said) if "graphs" in said else score.accepted

    return accepted_for


def properties(terminalreporter, wanted):
    return [value for reports in terminalreporter.stats.values() for report in reports
            for key, value in getattr(report, "user_properties", []) if key == wanted and report.when == "call"]


def pytest_terminal_summary(terminalreporter):
    show_categories(terminalreporter)
    show_troubles(terminalreporter)


def show_troubles(terminalreporter):
    by_kind = collections.defaultdict(collections.Counter)
    for _, cells in properties(terminalreporter, "troubles"):
        for kind, score_of, count in cells:
            by_kind[kind][score_of] += count
    if not by_kind:
        return
    terminalreporter.section("verdicts on programs whose trouble is known")
    by_kind["all"] = sum(by_kind.values(), collections.Counter())
    for kind, counts in by_kind.items():
        terminalreporter.write_line(f"{kind:16} right {counts['right']:3}   wrong {counts['wrong']:3}   cannot tell {counts['cannot tell']:3}")
    for framework, savings in properties(terminalreporter, "savings"):
        for name, promised, saved in savings:
            terminalreporter.write_line(f"{framework:6} {name:36} promised {promised / 2 ** 20:7.1f} MiB   saved {saved / 2 ** 20:7.1f} MiB")


def show_categories(terminalreporter):
    seen = [each for scores in properties(terminalreporter, "score") for each in scores]
    if not seen:
        return
    terminalreporter.section("categories at the steady peak, against the framework's own word")
    overall = collections.Counter()
    for framework, program, cells in sorted(seen):
        matrix = collections.Counter({(truth, said): size for truth, said, size in cells})
        overall += matrix
        terminalreporter.write_line(f"{framework:6} {program:22} {sum(matrix.values()) / 2 ** 20:8.1f} MiB   right {score.share_right(matrix):6.1%}   "
                                    f"judged {score.share_judged(matrix):6.1%}")
    terminalreporter.write_line(f"all: right {score.share_right(overall):.1%}")
    terminalreporter.write_line(score.as_text(overall))
