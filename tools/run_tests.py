#!/usr/bin/env python3
"""Runs the checks and tests of the repository, fast ones first, and ends with what each runner counted. Exit code 1 if anything failed.

    tools/run_tests.py                 what `make test` runs, after the build
    tools/run_tests.py --tier NAME     one tier: check, recording, browser, frameworks, depth
    tools/run_tests.py --presubmit     also clang-tidy on every file, the tests under the sanitizers, and the bare root
    tools/run_tests.py --only STEP     one step (--list prints tiers and steps)

What a step prints goes to .cache/log/test-STEP.log, and to the terminal if the step fails; test-STEP.xml there has the seconds of each test.
"""
import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("VRAMSCOPE_BUILD", ROOT / "build"))
LOGS = ROOT / ".cache/log"
TIERS = ["check", "recording", "browser", "frameworks", "depth", "presubmit"]
SAY_EVERY_S = 1 if sys.stdout.isatty() else 20
SHOWN_LINES = 300  # of a step that failed; the rest is in its log
DONE_OF_TOTAL = re.compile(rb"\[\s*(\d+)/(\d+)\]|^\s*(\d+)/(\d+) Test", re.MULTILINE)

# Folders of Python tests that belong to a tier by name; whatever else lies in tests/ is in "recording".
CHECK_FOLDERS = ["tests/golden", "tests/format", "tests/tools", "tests/docs"]
FRAMEWORK_FOLDERS = ["tests/tensorflow", "tests/torch", "tests/jax", "tests/meaning", "tests/conformance", "python/tests"]
DEPTH_FOLDERS = ["tests/sanitizers"]


@dataclass
class Step:
    tier: str
    name: str
    command: list
    count: str = ""  # pattern of the line in which the runner says how many tests it ran


def other_folders():
    named = {*CHECK_FOLDERS, *FRAMEWORK_FOLDERS, *DEPTH_FOLDERS, "tests/gpu"}
    # Forecasts first: the longest test is one of them, and would run alone at the end.
    return sorted({f"tests/{path.parent.relative_to(ROOT / 'tests').parts[0]}" for path in (ROOT / "tests").glob("*/**/test_*.py")} - named,
                  reverse=True)


def steps():
    py = sys.executable
    jobs = str(os.cpu_count() or 1)
    ctest_count = r"tests passed, \d+ tests? failed out of \d+"

    def tool(name, *args, tier="check", step=None):
        return Step(tier, step or name.removeprefix("check_").removeprefix("gen_"), [py, f"tools/{name}.py", *args])

    def pytest(tier, name, folders):
        # One more than there are cores: tests wait for programs that come to an end, for the disk, for a collector.
        workers = str((os.cpu_count() or 1) + 1)
        return Step(tier, name, [py, "-m", "pytest", "-n", workers, "-o", "console_output_style=count",
                                 f"--junitxml={LOGS / f'test-{name}.xml'}", *folders],
                    r"^=+ .*\b(passed|failed|error|skipped)\b.* in .*=+$")

    def shell(tier, name, *command, count=""):
        return Step(tier, name, list(command), count)

    return [
        tool("gen_schema", "--check"),
        tool("gen_hooks", "--check"),
        tool("check_layers"),
        tool("check_text"),
        tool("check_length"),
        tool("check_packages"),
        shell("check", "names", py, "-m", "ruff", "check", "--quiet", "--no-cache"),
        tool("check_format"),
        tool("check_inject", str(BUILD / "libvramscope_inject.so")),
        shell("check", "unit", "ctest", "--test-dir", str(BUILD), "-j", jobs, "--output-on-failure", "--no-tests=error", "-LE", "soak",
              count=ctest_count),
        pytest("check", "golden", CHECK_FOLDERS),
        tool("check_tidy", "--seconds", "120", tier="recording"),
        pytest("recording", "recording", other_folders()),
        shell("browser", "ui-unit", "tools/ui_tests.sh", "unit", count=r"Tests\s+\d+"),
        shell("browser", "ui-browser", "tools/ui_tests.sh", "browser", count=r"^\s*\d+ (passed|failed)"),
        pytest("frameworks", "frameworks", FRAMEWORK_FOLDERS),
        pytest("depth", "sanitizers", DEPTH_FOLDERS),
        tool("check_tidy", tier="presubmit", step="tidy-all"),
        shell("presubmit", "asan", "tools/sanitized_tests.sh", "asan", count=ctest_count),
        shell("presubmit", "tsan", "tools/sanitized_tests.sh", "tsan", count=ctest_count),
        # Every build replays the seeds; the search for new inputs needs a build of its own and takes its time.
        shell("presubmit", "fuzz", "tools/fuzz.sh", "30", count=r"^fuzz: ok, \d+ targets"),
        shell("presubmit", "bare", "tools/bare.sh", "all", count=r"^bare: ok"),
    ]


class Progress:
    """One line that says where the run is: rewritten on a terminal, elsewhere repeated from time to time."""

    def __init__(self, total):
        self.total, self.done, self.began, self.said = total, 0, time.monotonic(), 0.0

    def line(self, step, log):
        seconds = int(time.monotonic() - self.began)
        with open(log, "rb") as file:
            file.seek(max(0, log.stat().st_size - 65536))
            counts = DONE_OF_TOTAL.findall(file.read())
        tests = f", {int(counts[-1][0] or counts[-1][2])} of {int(counts[-1][1] or counts[-1][3])} tests" if counts else ""
        return f"[{step.tier}] {self.done} of {self.total} steps done, {step.name}{tests}, {seconds // 60}:{seconds % 60:02}"

    def say(self, step, log):
        if time.monotonic() - self.said < SAY_EVERY_S:
            return
        self.said = time.monotonic()
        print(*(["\r\x1b[K" + self.line(step, log)] if sys.stdout.isatty() else ["    " + self.line(step, log)]),
              end="" if sys.stdout.isatty() else "\n", flush=True)

    def finished(self, text):
        self.done += 1
        self.said = time.monotonic()
        print(("\r\x1b[K" if sys.stdout.isatty() else "") + text, flush=True)


def run(step, progress):
    """Returns exit code, seconds and the runner's count. Shows the output of a step that failed."""
    began = time.monotonic()
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"test-{step.name}.log"
    environment = {**os.environ, "VRAMSCOPE_BUILD": str(BUILD), "VRAMSCOPE_REQUIRE_ALL": "1", "NO_COLOR": "1"}
    with open(log, "wb") as output:
        child = subprocess.Popen(step.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment)
        while True:
            try:
                code = child.wait(timeout=1)
                break
            except subprocess.TimeoutExpired:
                progress.say(step, log)
    lines = log.read_text(errors="replace").splitlines()
    counts = [line.strip() for line in lines if step.count and re.search(step.count, line)]
    seconds = time.monotonic() - began
    progress.finished(f"==> {step.tier}: {step.name}: {'ok' if code == 0 else f'FAILED, exit code {code}'} ({seconds:.0f} s)")
    if code:
        print(*(line for line in lines[-SHOWN_LINES:] if line.strip()), sep="\n", flush=True)
        print(f"==> {step.name} failed; all of its output is in {log.relative_to(ROOT)}", flush=True)
    return code, seconds, counts[-1] if counts else ""


def pytest_total(counts):
    """The closing line of pytest for all of its runs together."""
    totals, seconds = {}, 0.0
    for text in counts:
        for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|warnings?|deselected)\b", text):
            word = word if word == "passed" else word.rstrip("s") + ("s" if word.startswith(("error", "warning")) else "")
            totals[word] = totals.get(word, 0) + int(number)
        seconds += float(re.search(r" in ([\d.]+)s", text).group(1))
    order = ["failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warnings", "errors"]
    return f"===== {', '.join(f'{totals[word]} {word}' for word in order if word in totals)} in {seconds:.2f}s ====="


def summarize(results, seconds):
    print("==> summary")
    for step, code, took, count in results:
        print(f"    {'ok    ' if code == 0 else 'FAILED'} {step.tier:10} {step.name:11} {took:5.0f} s  {count}".rstrip())
    failed = [step.name for step, code, _, _ in results if code]
    print(f"==> {len(results) - len(failed)} of {len(results)} steps passed in {seconds // 60:.0f} min {seconds % 60:.0f} s" +
          (f"; failed: {', '.join(failed)}" if failed else ""))
    for _, _, _, count in results:
        if "tests passed" in count:
            print(count)
    of_pytest = [count for _, _, _, count in results if count.startswith("==")]
    if of_pytest:
        print(pytest_total(of_pytest))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", action="append", default=[], choices=TIERS)
    parser.add_argument("--only", action="append", default=[], metavar="STEP")
    parser.add_argument("--presubmit", action="store_true")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()

    known = steps()
    if args.list:
        print(*(f"{step.tier:10} {step.name}" for step in known), sep="\n")
        return 0
    unknown = set(args.only) - {step.name for step in known}
    if unknown:
        parser.error(f"no step {', '.join(sorted(unknown))}; --list names them all")
    if args.only:
        chosen = [step for step in known if step.name in args.only]
    else:
        tiers = args.tier or (TIERS if args.presubmit else TIERS[:-1])
        chosen = [step for step in known if step.tier in tiers]

    began = time.monotonic()
    progress = Progress(len(chosen))
    results = [(step, *run(step, progress)) for step in chosen]
    return summarize(results, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
