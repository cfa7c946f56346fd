#!/usr/bin/env python3
"""Refuses includes and imports that go against the data flow.

    tools/check_layers.py [ROOT]

C++: a folder of src/ may include only the folders that ALLOWED names, and code that runs inside the user's process only
headers of the standard library that need no run-time library. TypeScript: a folder of ui/src/ may import only what UI_ALLOWED names.
"""
import re
import sys
from pathlib import Path

OUTSIDE_BASE = {"support", "base"}
READS_TRACES = {"trace"} | OUTSIDE_BASE

ALLOWED = {
    # inside the user's process
    "base": set(),
    "spool": {"base"},
    "record": {"spool", "base"},
    "capture": {"record", "spool", "base"},
    "tfops": {"base"},
    # outside
    "support": {"base"},
    "trace": OUTSIDE_BASE,
    "collect": {"spool"} | READS_TRACES,
    "importers": READS_TRACES,
    "symbolize": READS_TRACES,
    "whatif": OUTSIDE_BASE,
    "analyze": {"whatif"} | READS_TRACES,
    "exporters": {"analyze"} | READS_TRACES,
    "serve": {"analyze", "exporters"} | READS_TRACES,
    "cli": {"collect", "serve", "exporters", "importers", "symbolize", "analyze", "spool"} | READS_TRACES,
}

# Edges that should not be there and wait for a better place: (file, included folder), each with its reason.
DEBT = {}

INSIDE = {"base", "spool", "record", "capture", "tfops"}
# What the compiler can do without libstdc++: types, templates and the C library.
INSIDE_HEADERS = {
    "algorithm", "array", "atomic", "bit", "cerrno", "charconv", "climits", "concepts", "cstdarg", "cstddef", "cstdint", "cstdio", "cstdlib",
    "cstring", "ctime", "initializer_list", "iterator", "limits", "new", "numeric", "span", "string_view", "tuple", "type_traits",
    "utility",
}

UI_ALLOWED = {
    "gen": set(),
    "format": set(),
    "rpc": {"gen"},
    "report": {"gen", "format", "rpc"},
    "draw": {"gen", "format"},
    "state": {"gen", "format", "rpc"},
    "parts": {"gen", "format", "rpc", "draw", "state"},
    "views": {"gen", "format", "rpc", "draw", "state", "parts"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*['"](\.{1,2}/[^'"]+)['"]""")


def check_cpp_file(path, folder, src):
    shown = path.relative_to(src.parent)
    is_test = path.stem.endswith(("_test", "_bench", "_fuzz"))
    for form, target in INCLUDE.findall(path.read_text()):
        first = target.split("/")[0]
        if form == '"':
            if first == "vramscope" or first == folder:
                continue
            if first not in ALLOWED:
                yield f'{shown}: includes "{target}"; write the path from src/, as in "{folder}/{Path(target).name}"'
            elif first not in ALLOWED[folder] and (str(shown), first) not in DEBT:
                yield f'{shown}: includes "{target}", but {folder}/ may only see: {", ".join(sorted(ALLOWED[folder])) or "nothing"}'
        elif folder in INSIDE and not is_test and "." not in target and "/" not in target and target not in INSIDE_HEADERS:
            yield f"{shown}: includes <{target}>, which may need libstdc++ inside the user's process"


def check_cpp(src):
    for folder in sorted(p for p in src.iterdir() if p.is_dir()):
        if folder.name not in ALLOWED:
            yield f"src/{folder.name}: no line for this folder in ALLOWED of tools/check_layers.py"
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".h", ".cpp", ".c", ".inc"):
                yield from check_cpp_file(path, folder.name, src)


def check_ui(ui):
    for path in sorted(ui.rglob("*")):
        folder = path.relative_to(ui).parts[0]
        if path.suffix not in (".ts", ".svelte") or folder not in UI_ALLOWED or ".test." in path.name:
            continue
        for target in IMPORT.findall(path.read_text()):
            resolved = (path.parent / target).resolve()
            if not resolved.is_relative_to(ui.resolve()):
                continue
            first = resolved.relative_to(ui.resolve()).parts[0]
            if first in UI_ALLOWED and first != folder and first not in UI_ALLOWED[folder]:
                yield f"{path.relative_to(ui.parent)}: imports {target}, but {folder}/ may only see: {', '.join(sorted(UI_ALLOWED[folder]))}"


def check(root):
    yield from check_cpp(root / "src")
    if (root / "ui/src").is_dir():
        yield from check_ui(root / "ui/src")


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    if not any((root / "src").glob("*/*.cpp")):
        print(f"layers: {root}: no C++ sources in its src/; expected a checkout", file=sys.stderr)
        return 2
    errors = list(check(root))
    print(*errors, sep="\n", end="\n" if errors else "")
    print(f"layers: {len(errors)} wrong edges" if errors else "layers: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
