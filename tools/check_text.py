#!/usr/bin/env python3
"""Rejects text that has no place in the repository.

    tools/check_text.py [ROOT]

Checks every file that git tracks or would track (in a folder that is not a repository: every file).
"""
import re
import subprocess
import sys
from pathlib import Path

# Written so that this file does not match itself.
FORBIDDEN = [
    (re.compile(r"(?<![\w.$}])/(?:wor[k]|roo[t]|hom[e]/[a-z]\w*|User[s])/"), "a path of one machine"),
    (re.compile(r"\b(?:pyp[i]\.org|pythonhoste[d]\.org|npmj[s]\.(?:org|com)|yarnpk[g]\.com|conda\.anacond[a]\.org|deb\.debia[n]\.org|archive\.ubunt[u]\.com)"),
     "the host name of a package registry"),
    (re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X]|HAC[K])\b"), "a note to do something later; do it, or open an issue"),
    (re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE), "a merge conflict"),
    (re.compile(r"\b(?:mend[s]|at its begi[n]|the begi[n] of|bytes at stak[e]|counts as non[e]|is none eithe[r])\b"), "wording that is not English; see CONTRIBUTING.md"),
]


def tracked_files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    if listed.returncode == 0:
        return [root / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in root.rglob("*") if path.is_file()]


def check_file(path, shown):
    if not path.is_file() or path.is_symlink():
        return
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return  # binary: traces, corpora
    for pattern, what in FORBIDDEN:
        for match in pattern.finditer(text):
            yield f"{shown}:{text.count(chr(10), 0, match.start()) + 1}: {what}: {match.group().strip()}"


def check_all(name, check):
    """Prints what check(path, shown) finds in each file of the root that the command line names. Returns the exit code."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    files = sorted(tracked_files(root)) if root.is_dir() else []
    if not files:
        print(f"{name}: {root}: no files there; name the root of a checkout")
        return 2
    errors = [error for path in files for error in check(path, path.relative_to(root))]
    print(*errors, sep="\n", end="\n" if errors else "")
    print(f"{name}: {len(errors)} findings" if errors else f"{name}: ok, {len(files)} files")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(check_all("text", check_file))
