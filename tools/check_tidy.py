#!/usr/bin/env python3
"""Runs clang-tidy 19 with the rules of .clang-tidy over the files of build/compile_commands.json; every finding is an error.

    tools/check_tidy.py                              all files
    tools/check_tidy.py --changed [--seconds N]      files that differ from the last commit but one; after N seconds no new one is begun
    tools/check_tidy.py FILE...                      these

A file that was clean is not looked at again until it, a header of ours that it includes, its command or the rules change.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("VRAMSCOPE_BUILD", ROOT / "build"))
CACHE = ROOT / ".cache/tidy"
# The recorder's hot path is compiled with the first two: clang does not know the one, and its headers do not compile with the other.
# The precompiled header is g++'s own, and without it a file that forgot an include is found.
ONLY_GCC = re.compile(r" (?:-m(?:memset-strategy=\S+|general-regs-only)|-Winvalid-pch|-include \S+/cmake_pch\.hxx)(?= )")


def changed_files():
    names = set()
    for command in (["git", "diff", "--name-only", "HEAD~1"], ["git", "ls-files", "--others", "--exclude-standard"]):
        names |= set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.split())
    return {ROOT / name for name in names}


def own_dependencies():
    """What each object was made of, as ninja noted it: files of ours, without those of the system."""
    listing = subprocess.run(["ninja", "-C", str(BUILD), "-t", "deps"], capture_output=True, text=True).stdout
    found, names = {}, []
    for line in listing.splitlines():
        if line.startswith("    "):
            path = (BUILD / line.strip()).resolve()
            if path.is_relative_to(ROOT):
                names.append(path)
        elif line:
            names = found.setdefault(line.split(": #deps")[0], [])
    return found


def digest_of(entry, dependencies):
    """Of all that decides what clang-tidy finds in a file. None: ninja does not know yet what the file includes."""
    output = re.search(r" -o (\S+)", entry["command"])
    if not output or (paths := dependencies.get(output[1])) is None:
        return None
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + entry["command"].replace(str(ROOT), ".").encode())
    for path in [Path(entry["file"]), *sorted(paths)]:
        digest.update(path.read_bytes() if path.exists() else b"gone")
    return digest.hexdigest()


def tidy(entry, dependencies):
    """(clean, output) for one file."""
    digest = digest_of(entry, dependencies)
    mark = CACHE / digest if digest else None
    if mark and mark.exists():
        return True, ""
    done = subprocess.run(["clang-tidy-19", "--quiet", f"-p={CACHE}", "--warnings-as-errors=*",
                           "--extra-arg=-Wno-unknown-warning-option", entry["file"]], capture_output=True, text=True)
    if done.returncode == 0 and mark:
        mark.touch()
    return done.returncode == 0, done.stdout + (done.stderr if done.returncode else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_args()

    entries = json.loads(ONLY_GCC.sub("", (BUILD / "compile_commands.json").read_text()))
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "compile_commands.json").write_text(json.dumps(entries))
    entries = {e["file"]: e for e in entries if Path(e["file"]).is_relative_to(ROOT) and not Path(e["file"]).is_relative_to(BUILD)}
    wanted = {path.resolve() for path in args.files} or (changed_files() if args.changed else None)
    chosen = [e for name, e in sorted(entries.items()) if wanted is None or Path(name) in wanted]

    dependencies, began = own_dependencies(), time.monotonic()
    failed, left_out = [], []

    def job(entry):
        if time.monotonic() - began > args.seconds:
            left_out.append(entry["file"])
            return
        clean, output = tidy(entry, dependencies)
        if not clean:
            failed.append(entry["file"])
            print(output, end="", flush=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, _ in enumerate(pool.map(job, chosen), 1):
            if done % 20 == 0:
                print(f"    tidy: {done} of {len(chosen)} files, {time.monotonic() - began:.0f} s", flush=True)
    if left_out:
        print(f"tidy: {len(left_out)} files were left for `make presubmit`")
    print(f"tidy: {len(failed)} of {len(chosen)} files have findings" if failed else f"tidy: ok, {len(chosen) - len(left_out)} files")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
