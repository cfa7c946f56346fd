#!/usr/bin/env python3
"""Rejects files of more than 400 lines and functions of more than 60, unless a comment says why.

    tools/check_length.py [ROOT]

The reason is a comment, "Long because ...": in the first 20 lines of a file; directly above a function or in it. Relies on the
formatting: a function ends at the first closing brace with the indentation of its first line.
"""
import ast
import re
import sys

from check_text import check_all

FILE_LINES, FUNCTION_LINES, HEAD_LINES = 400, 60, 20
BRACES = {".c", ".cpp", ".h", ".ts", ".svelte"}
SOURCE = BRACES | {".py", ".js", ".mjs", ".css", ".sh", ".cmake"}
REASON = re.compile(r"\bLong,? because \w")
# What encloses functions or is part of one, and is not a function itself.
NOT_A_FUNCTION = re.compile(r"(?:if|for|while|switch|do|else|try|return|namespace|(?:export )?(?:class|struct|enum|union|interface)"
                            r"|(?:test\.)?describe|template|requires|public|private|protected|case|default)\b")
SIGNATURE = re.compile(r"[\w~].*\(")
CONTINUES = re.compile(r".*[^;{}]$")


def braced_functions(lines):
    """(first line, one past the last line, name) of each outermost function; methods are outermost too."""
    i = 0
    while i < len(lines):
        text = lines[i].strip()
        indent = lines[i][:len(lines[i]) - len(lines[i].lstrip())]
        i += 1
        if NOT_A_FUNCTION.match(text) or not SIGNATURE.match(text):
            continue
        head = i - 1
        while i < len(lines) and CONTINUES.match(lines[i - 1]) and lines[i].startswith(indent + " "):
            i += 1
        if not lines[i - 1].split(" //")[0].rstrip().endswith("{"):
            continue
        end = next((n for n in range(i, len(lines)) if lines[n].startswith(indent + "}")), None)
        if end is not None:
            yield head, end + 1, text.split("(")[0].split()[-1] if not text.startswith("TEST") else text.rstrip(" {")
            i = end + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno - 1, node.end_lineno, node.name


def has_reason(lines):
    return any(REASON.search(line) for line in lines)


def check_file(path, shown):
    if path.suffix not in SOURCE or "gen" in path.parts or path.is_symlink() or not path.is_file():
        return
    text = path.read_text()
    lines = text.splitlines()
    if len(lines) > FILE_LINES and not has_reason(lines[:HEAD_LINES]):
        yield f"{shown}: {len(lines)} lines; split it, or say 'Long because ...' at its head (limit: {FILE_LINES})"
    functions = python_functions(text) if path.suffix == ".py" else braced_functions(lines) if path.suffix in BRACES else ()
    for begin, end, name in functions:
        if end - begin > FUNCTION_LINES and not has_reason(lines[max(0, begin - 3):end]):
            yield f"{shown}:{begin + 1}: {name} has {end - begin} lines; split it, or say 'Long because ...' above it (limit: {FUNCTION_LINES})"


if __name__ == "__main__":
    sys.exit(check_all("length", check_file))
