#!/usr/bin/env python3
"""Runs every check and test of the repository and ends with what each runner counted. Exit code 1 if anything failed.

    tools/run_tests.py                 what `make test` runs, after the build
    tools/run_tests.py --presubmit     also clang-tidy on every file and the tests under the sanitizers
    tools/run_tests.py --only NAME     one step (names are printed by --list)
"""
import argparse
import os
import re
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("VRAMSCOPE_BUILD", ROOT / "build"))
SILENCE_S = 20  # after so long without output a line says that the step is still running


@dataclass
class Step:
    name: str
    command: list
    count: str = ""  # pattern of the line in which the runner says how many tests it ran
    presubmit: bool = False  # only in --presubmit
    needs: list = field(default_factory=list)  # the step exists only in a checkout that has these files


def steps():
    py = sys.executable
    jobs = str(os.cpu_count() or 1)
    tool = lambda name, *args: [py, f"tools/{name}.py", *args]
    sanitized = lambda preset: ["tools/sanitized_tests.sh", preset]
    ctest_count = r"tests passed, \d+ tests? failed out of \d+"
    pytest_count = r"=+ .*\b(passed|failed|error)\b.* in .*=+"
    return [
        Step("schema", tool("gen_schema", "--check")),
        Step("rpc", tool("gen_rpc", "--check")),
        Step("hooks", tool("gen_hooks", "--check")),
        Step("layers", tool("check_layers")),
        Step("text", tool("check_text")),
        Step("format", tool("check_format")),
        Step("inject", tool("check_inject", str(BUILD / "libvramscope_inject.so")), needs=["src/capture/CMakeLists.txt"]),
        Step("tidy", tool("check_tidy", "--changed", "--seconds", "120")),
        Step("ctest", ["ctest", "--test-dir", str(BUILD), "-j", jobs, "--output-on-failure", "--no-tests=error", "-LE", "soak"],
             count=ctest_count),
        Step("ui", ["tools/ui_tests.sh"], count=r"Tests\s+\d+", needs=["ui/package.json"]),
        Step("pytest", [py, "-m", "pytest", "-n", jobs], count=pytest_count),
        Step("fuzz", ["tools/fuzz.sh", "8"], count=r"^fuzz: ok, \d+ targets", needs=["fuzz/CMakeLists.txt"]),
        Step("tidy-all", tool("check_tidy"), presubmit=True),
        Step("asan", sanitized("asan"), count=ctest_count, presubmit=True),
        Step("tsan", sanitized("tsan"), count=ctest_count, presubmit=True),
    ]


def run(step):
    """Passes the output on as it comes. Returns exit code, seconds and the runner's count."""
    began = heard = time.monotonic()
    child = subprocess.Popen(step.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**os.environ, "VRAMSCOPE_BUILD": str(BUILD), "VRAMSCOPE_REQUIRE_ALL": "1",
                                  "NO_COLOR": "1"})
    output = bytearray()
    while True:
        if not select.select([child.stdout], [], [], 1)[0]:
            if time.monotonic() - heard >= SILENCE_S:
                heard = time.monotonic()
                print(f"\n    {step.name}: {heard - began:.0f} s", flush=True)
            continue
        chunk = os.read(child.stdout.fileno(), 65536)
        if not chunk:
            break
        heard = time.monotonic()
        output += chunk
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    code = child.wait()
    lines = [line for line in output.decode(errors="replace").splitlines() if step.count and re.search(step.count, line)]
    return code, time.monotonic() - began, lines[-1].strip() if lines else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presubmit", action="store_true")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()

    known = steps()
    if args.list:
        print(*(step.name for step in known), sep="\n")
        return 0
    unknown = set(args.only) - {step.name for step in known}
    if unknown:
        parser.error(f"no step {', '.join(sorted(unknown))}; --list names them all")
    chosen = [s for s in known if (s.name in args.only if args.only else args.presubmit or not s.presubmit)]

    results = []
    for step in chosen:
        if not all((ROOT / path).exists() for path in step.needs):
            continue
        print(f"==> {step.name}", flush=True)
        code, seconds, count = run(step)
        results.append((step, code, seconds, count))
        print(f"==> {step.name}: {'ok' if code == 0 else f'FAILED, exit code {code}'} ({seconds:.0f} s)", flush=True)

    print("\n==> summary")
    for step, code, seconds, count in results:
        print(f"    {'ok    ' if code == 0 else 'FAILED'} {step.name:9} {seconds:5.0f} s  {count}".rstrip())
    failed = [step.name for step, code, _, _ in results if code]
    print(f"==> {len(results) - len(failed)} of {len(results)} steps passed" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
