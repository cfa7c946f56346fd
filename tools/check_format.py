#!/usr/bin/env python3
"""Says which C and C++ files clang-format 19 would change.

    tools/check_format.py [--fix] [FILE...]      without files: everything that git tracks, except generated files
"""
import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLANG_FORMAT = "clang-format-19"


def source_files():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.c", "*.cpp"],
                            cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        print(f"format: {ROOT}: not a git checkout; name the files", file=sys.stderr)
        raise SystemExit(2)
    paths = [ROOT / name for name in listed.stdout.split()]
    return [path for path in paths if "gen" not in path.parts and path.exists()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_args()
    files = args.files or source_files()
    if not files:
        print("format: no files", file=sys.stderr)
        return 1
    mode = ["-i"] if args.fix else ["--dry-run", "-Werror"]
    done = subprocess.run([CLANG_FORMAT, "--style=file", "--fallback-style=none", *mode, *files], capture_output=True, text=True)
    wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "-Wclang-format-violations" in line})
    for name in wrong:
        print(f"{Path(name).relative_to(ROOT) if Path(name).is_relative_to(ROOT) else name}: not formatted")
    if done.returncode and not wrong:
        print(done.stderr, end="")
    print(f"format: {len(wrong)} files; run tools/check_format.py --fix" if done.returncode else f"format: ok, {len(files)} files")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
