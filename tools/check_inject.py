#!/usr/bin/env python3
"""Checks that the library which goes into the user's process asks for no more, and offers no more, than what is written down.

    tools/check_inject.py LIBRARY             compares with tools/inject/ and with the tables of hooks in src/capture/
    tools/check_inject.py LIBRARY --update    writes tools/inject/ anew (read the difference before you commit it)

It exports exactly the rows of those tables and tools/inject/exports.txt, and imports exactly tools/inject/imports.txt.

Rules that no list can lift: needed libraries, no C++ run-time library, no heap, no threads, nothing that sanitizers replace, no
symbol newer than glibc 2.28, little thread-local memory.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTS = ROOT / "tools/inject"
# A row of a framework's table (src/capture/hook.h), and one of the driver's (src/capture/cuda/hooks.inc).
HOOK = re.compile(r'\bHOOK\(\w+, \w+, "[^"]*",[^"]*"(\w+)"|^VS_HOOK\((\w+), (?=\w+, \d)', re.MULTILINE)
NEEDED = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}
NEWEST_GLIBC = (2, 28)
MAX_TLS_BYTES = 1024  # initial-exec: it comes out of the small surplus that glibc keeps for libraries loaded late
HEAP = {"malloc", "calloc", "realloc", "reallocarray", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc", "strdup",
        "strndup", "asprintf", "vasprintf", "getline", "fopen", "fdopen", "opendir"}
# Sanitizers and other preloaded libraries put their own before these.
REPLACED = {"memcpy", "memmove", "memset", "memcmp", "strlen", "strcmp", "strncmp", "strncpy", "strcpy", "strcat", "strchr", "strrchr", "strstr",
            "strnlen", "memchr", "open", "open64", "close", "read", "write", "pread", "pwrite", "fcntl", "mmap", "munmap", "madvise", "mprotect",
            "pipe2", "readlink", "rename", "unlink", "nanosleep", "usleep", "getenv", "stat", "fstat", "process_vm_readv"}
THREADS = {"pthread_create", "thrd_create"}
CPLUSPLUS = re.compile(r"^(_Zn[aw]|_Zd[al]|_ZSt|_ZNSt|_ZNKSt|_ZTVN10__cxxabiv1|__cxa_(?!finalize$|atexit$|thread_atexit_impl$)|__gxx_|_Unwind_)")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def dynamic_symbols(library, which):
    """{name: version or ""}, weak ones too."""
    found = {}
    for line in output_of("nm", "-D", f"--{which}-only", library).splitlines():
        name, _, version = line.split()[-1].replace("@@", "@").partition("@")
        found[name] = version
    return found


def read_list(path):
    return {line for line in path.read_text().splitlines() if line and not line.startswith("#")}


def write_list(path, title, names):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"# {title} Written by tools/check_inject.py --update.\n" + "".join(f"{name}\n" for name in sorted(names)))


def hooked(capture):
    """The symbols that the tables of hooks name."""
    tables = [path for path in capture.glob("*/*") if path.name in ("hooks.inc", "framework.cpp")]
    return {framework or driver for path in tables for framework, driver in HOOK.findall(path.read_text())}


def fixed_rules(library, imports):
    dynamic = output_of("readelf", "-W", "-d", library)
    for name in sorted(set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) - NEEDED):
        yield f"needs {name}; only {', '.join(sorted(NEEDED))} are in every process"
    if "TEXTREL" in dynamic:
        yield "has text relocations"
    for name, version in sorted(imports.items()):
        numbers = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        if version and not numbers:
            yield f"wants {name}@{version}, which is not glibc's"
        elif numbers and tuple(map(int, numbers.groups())) > NEWEST_GLIBC:
            yield f"wants {name}@{version}, newer than glibc {NEWEST_GLIBC[0]}.{NEWEST_GLIBC[1]}"
        if name in HEAP:
            yield f"uses {name}: the heap belongs to the program"
        if name in REPLACED:
            yield f"uses {name} of the process, which a sanitizer may have replaced; add it to src/base/own_libc.cpp"
        if name in THREADS:
            yield f"uses {name}: the library starts no threads"
        if CPLUSPLUS.match(name):
            yield f"uses {name}: there is no C++ run-time library in a C program"
    for line in output_of("readelf", "-W", "-l", library).splitlines():
        if line.split()[:1] == ["TLS"] and int(line.split()[5], 16) > MAX_TLS_BYTES:
            yield f"has {int(line.split()[5], 16)} bytes of thread-local memory, more than {MAX_TLS_BYTES}"


def list_rules(kind, found, listed):
    for name in sorted(found - listed):
        yield f"{kind} {name}, which is neither a hook nor in tools/inject/; if that is meant, run tools/check_inject.py --update"
    for name in sorted(listed - found):
        yield f"no longer {kind} {name}, which a table of hooks or tools/inject/ promises; if that is meant, run tools/check_inject.py --update"


def check(library, lists, hooks):
    imports, exports = dynamic_symbols(library, "undefined"), dynamic_symbols(library, "defined")
    yield from fixed_rules(library, imports)
    yield from list_rules("imports", set(imports), read_list(lists / "imports.txt"))
    yield from list_rules("exports", set(exports), read_list(lists / "exports.txt") | hooks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--lists", type=Path, default=LISTS)
    args = parser.parse_args()
    if not args.library.exists():
        print(f"inject: {args.library} does not exist; run make build", file=sys.stderr)
        return 2
    hooks = hooked(ROOT / "src/capture")
    if args.update:
        write_list(args.lists / "imports.txt", "What the library takes from the process.", dynamic_symbols(args.library, "undefined"))
        write_list(args.lists / "exports.txt", "What the library puts into the process besides the hooks of src/capture/.",
                   set(dynamic_symbols(args.library, "defined")) - hooks)
    errors = list(check(args.library, args.lists, hooks))
    print(*(f"{args.library.name}: {error}" for error in errors), sep="\n", end="\n" if errors else "")
    print(f"inject: {len(errors)} findings" if errors else "inject: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
