#!/usr/bin/env python3
"""Runs clang-tidy with the rules of .clang-tidy over the files of build/compile_commands.json; every finding is an error.

    tools/check_tidy.py [--seconds N]      all files, the last changed first; after N seconds, no further file is begun
    tools/check_tidy.py FILE...            these

A file that was clean is not looked at again until it, a header of ours that it includes, its command, the rules or clang-tidy change.
"""
import argparse
import concurrent.futures
import functools
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
# Of tools/requirements/venv.txt: it passes over system headers, which takes Debian's clang-tidy 19 five times as long.
CLANG_TIDY = Path(sys.executable).parent / "clang-tidy"
# The recorder's hot path is compiled with the first two: clang does not know the one, and its headers do not compile with the other.
# The precompiled header is g++'s own, and without it a file that forgot an include is found.
ONLY_GCC = re.compile(r" (?:-m(?:memset-strategy=\S+|general-regs-only)|-Winvalid-pch|-include \S+/cmake_pch\.hxx)(?= )")
# The commands are g++'s. The second is switched off for clang in cmake/warnings.cmake too.
FOR_CLANG = ["-Wno-unknown-warning-option", "-Wno-deprecated-declarations"]


def names_by_last_change():
    """What is not committed, then what the commits changed, newest first. Names come more than once."""
    for command in (["diff", "--name-only", "HEAD"], ["ls-files", "--others", "--exclude-standard"], ["log", "--name-only", "--format="]):
        yield from subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout.split()


def newest_first(entries, dependencies):
    """The entries in the order in which their files were last changed. A changed header stands for the first file that includes it."""
    found_through = {path: name for name in sorted(entries, reverse=True) for path in dependencies.get(output_of(entries[name]), [])}
    changed = (ROOT / name for name in names_by_last_change())
    names = (str(path) if str(path) in entries else found_through.get(path) for path in changed)
    return [entries[name] for name in dict.fromkeys([*filter(None, names), *sorted(entries)])]


def output_of(entry):
    found = re.search(r" -o (\S+)", entry["command"])
    return found and found[1]


@functools.cache
def own_file(name):
    """The path of a dependency, None if it is none of ours. Most headers are a dependency of hundreds of objects."""
    path = (BUILD / name).resolve()
    return path if path.is_relative_to(ROOT) else None


def own_dependencies():
    """What each object was made of, as ninja noted it: files of ours, without those of the system."""
    listing = subprocess.run(["ninja", "-C", str(BUILD), "-t", "deps"], capture_output=True, text=True).stdout
    found, names = {}, []
    for line in listing.splitlines():
        if line.startswith("    "):
            if path := own_file(line.strip()):
                names.append(path)
        elif line:
            names = found.setdefault(line.split(": #deps")[0], [])
    return found


@functools.cache
def version():
    return subprocess.run([CLANG_TIDY, "--version"], capture_output=True, check=True).stdout


def digest_of(entry, dependencies):
    """Of all that decides what clang-tidy finds in a file. None: ninja does not know yet what the file includes."""
    paths = dependencies.get(output_of(entry))
    if paths is None:
        return None
    digest = hashlib.sha256(version() + (ROOT / ".clang-tidy").read_bytes() + entry["command"].replace(str(ROOT), ".").encode())
    for path in [Path(entry["file"]), *sorted(paths)]:
        digest.update(path.read_bytes() if path.exists() else b"gone")
    return digest.hexdigest()


def tidy(entry, dependencies):
    """(clean, output) for one file."""
    digest = digest_of(entry, dependencies)
    mark = CACHE / digest if digest else None
    if mark and mark.exists():
        return True, ""
    done = subprocess.run([CLANG_TIDY, "--quiet", f"-p={CACHE}", "--warnings-as-errors=*", *(f"--extra-arg={option}" for option in FOR_CLANG),
                           entry["file"]], capture_output=True, text=True)
    if done.returncode == 0 and mark:
        mark.touch()
    return done.returncode == 0, done.stdout + (done.stderr if done.returncode else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_args()
    if not CLANG_TIDY.exists():
        print(f"tidy: {CLANG_TIDY} is missing; run 'make environments' and use .venv/bin/python")
        return 2

    entries = json.loads(ONLY_GCC.sub("", (BUILD / "compile_commands.json").read_text()))
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "compile_commands.json").write_text(json.dumps(entries))
    entries = {e["file"]: e for e in entries if Path(e["file"]).is_relative_to(ROOT) and not Path(e["file"]).is_relative_to(BUILD)}
    dependencies, began = own_dependencies(), time.monotonic()
    wanted = {str(path.resolve()) for path in args.files}
    if unknown := wanted - entries.keys():
        parser.error(f"{', '.join(sorted(unknown))}: not a file that the build compiles")
    chosen = [entry for entry in newest_first(entries, dependencies) if not wanted or entry["file"] in wanted]
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
