"""What the build used: the headers in ninja's dependency log, the archives, libraries and commands of its rules."""
import os
import re
import subprocess
from pathlib import Path

from packages.listed import Need, refuse

SHIPPED = ["vramscope", "libvramscope_inject.so", "libvramscope_tfops.so"]
# Used without a trace in ninja's files.
UNSEEN = [
    ("/usr/lib/python3*/ensurepip/__init__.py", "build", "python3 -m venv in tools/setup.sh"),
    ("/usr/include/python3.*/Python.h", "test", "torch.compile in tests/torch"),
    ("/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.asan-x86_64.a", "test", "the sanitizer presets"),
    ("/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a", "test", "the fuzz preset"),
    ("/usr/lib/llvm-19/bin/llvm-symbolizer", "test", "the reports of the sanitizers"),
]


def folder(root):
    build = Path(os.environ.get("VRAMSCOPE_BUILD", root / "build"))
    if not (build / ".ninja_deps").exists():
        refuse(f"{build}: no build there; run 'make everything'")
    return build


def ninja(build, *args):
    return subprocess.run(["ninja", "-C", str(build), *args], capture_output=True, text=True, check=True).stdout


def headers(build):
    """object -> system headers"""
    found, current = {}, None
    for line in ninja(build, "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            current = found.setdefault(line.partition(":")[0], [])
        elif line.strip().startswith("/usr/"):
            current.append(os.path.normpath(line.strip()))
    return found


def library(name):
    """The file behind -lNAME."""
    for suffix in ("so", "a"):
        path = subprocess.run(["c++", f"-print-file-name=lib{name}.{suffix}"], capture_output=True, text=True).stdout.strip()
        if path.startswith("/"):
            return os.path.normpath(path)
    return None


def words_of(commands):
    """What these commands name: archives and libraries by their path, libraries of the compiler (-lpthread), programs."""
    libraries, implicit, programs = set(), set(), set()
    for command in commands.splitlines():
        for part in re.split(r"&&|;|\|\||(?<= )\(|\) ", command):
            words = [word for word in part.split() if word != ":"]
            if not words:
                continue
            programs |= {word for word in words if word.startswith(("/usr/bin/", "/bin/"))}
            libraries |= {os.path.normpath(word) for word in words[1:] if re.match(r"/usr/.*\.(?:a|so)(?:\.\d+)*$", word)}
            implicit |= {word[2:] for word in words[1:] if re.fullmatch(r"-l[\w+-]+", word)}
    return libraries, {library(name) for name in implicit} - {None}, programs


def needs(build):
    included = headers(build)
    inputs = set(ninja(build, "-t", "inputs", *SHIPPED).split())
    out = {}

    def add(what, section, named, used_by):
        out.setdefault((what, section), Need(what, section, named, used_by))

    for section, targets in (("build", SHIPPED), ("test", ["all"])):
        libraries, implicit, programs = words_of(ninja(build, "-t", "commands", *targets))
        for path in sorted(libraries | implicit | programs):
            if (path, "build") not in out:
                add(path, section, path not in implicit, "the rules of build.ninja")
    for path in re.findall(r"^CMAKE_(?:MAKE_PROGRAM|C_COMPILER):\w+=(.*)", (build / "CMakeCache.txt").read_text(), re.MULTILINE):
        add(path, "build", True, "CMakeCache.txt")
    for output, paths in included.items():
        for path in paths:
            if (path, "build") not in out:
                add(path, "build" if output in inputs else "test", False, output)
    for pattern, section, used_by in UNSEEN:
        matches = sorted(Path("/").glob(pattern[1:]))
        add(str(matches[0]) if matches else pattern, section, False, used_by)
    return list(out.values())
