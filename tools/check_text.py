#!/usr/bin/env python3
"""Refuses text that has no place in the repository, and files that have grown too long.

    tools/check_text.py [ROOT]

Looks at every file that git tracks (in a folder that is no repository: at every file).
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
]
SOURCE = {".c", ".cpp", ".h", ".py", ".ts", ".svelte", ".js", ".css", ".sh", ".cmake"}
WANTS_REASON_LINES = 600
REFUSED_LINES = 1000
# Hand-written files above 600 lines, each with its reason.
LONG_FILES = {}


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
    lines = text.count("\n")
    if path.suffix in SOURCE and "gen" not in path.parts:
        if lines > REFUSED_LINES:
            yield f"{shown}: {lines} lines; more than {REFUSED_LINES} are refused: split it"
        elif lines > WANTS_REASON_LINES and str(shown) not in LONG_FILES:
            yield f"{shown}: {lines} lines; more than {WANTS_REASON_LINES} need a reason in LONG_FILES of tools/check_text.py"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    files = sorted(tracked_files(root))
    errors = [error for path in files for error in check_file(path, path.relative_to(root))]
    print(*errors, sep="\n", end="\n" if errors else "")
    print(f"text: {len(errors)} findings" if errors else f"text: ok, {len(files)} files")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
