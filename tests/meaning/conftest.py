"""Recording programs that say what their memory is for, and the table of all scores at the end."""
import collections
import json
import os
from pathlib import Path

import pytest

import score
import tf_truth
import xla_truth

HERE = Path(__file__).resolve().parent


@pytest.fixture
def scored(vramscope, run, tmp_path, record_property):
    """scored(python, "torch_programs.py", "mlp") -> (matrix, wrong blocks): see score.py."""

    def call(python, program, *arguments, options=()):
        folder, claims = tmp_path / "out", tmp_path / "claims.json"
        run([vramscope, "run", "-o", folder, "--quiet", *options, "--", python, HERE / program, *arguments],
            env={**os.environ, "VRAMSCOPE_TEST_CLAIMS": str(claims), "TF_CPU_ALLOCATOR_USE_BFC": "1"})
        trace, = folder.glob("*.vram")
        said = json.loads(claims.read_text())
        accepted = xla_truth.accepted(folder) if "--xla" in options else tf_truth.accepted(said) if "graphs" in said else score.accepted
        matrix, wrong = score.score(vramscope, trace, said, accepted)
        record_property("score", (program.partition("_")[0], " ".join(arguments), [[*key, size] for key, size in matrix.items()]))
        return matrix, wrong

    return call


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
    seen = properties(terminalreporter, "score")
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
