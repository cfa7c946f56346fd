#!/usr/bin/env python3
"""Writes glibc as it looked to a linker in an older release: shared libraries without code, with the symbols and versions of then.

    stubs.py FOLDER NEWEST COMPILER YOUNGER     e.g. stubs.py build/glibc-2.28 2.28 cc libvs_younger.a

glibc never takes a symbol version away, so the library of this machine knows them all. FOLDER gets libc.so and libm.so as -lc
and -lm look for them; what the old release lacks is then an undefined symbol at link time, unless the archive YOUNGER defines it.
"""
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

STUBBED = ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"]
SYMBOL = re.compile(r"^ *\d+: ([0-9a-f]+) +(\w+) (FUNC|IFUNC|OBJECT) +(GLOBAL|WEAK) +DEFAULT +\w+ (\w+)@@?GLIBC_(\d+(?:\.\d+)+)$")


def number(version):
    return tuple(map(int, version.split(".")))


class Symbol(NamedTuple):
    version: str
    kind: str  # FUNC, IFUNC, OBJECT
    binding: str
    address: int
    size: int


def symbols_of(library, newest):
    """{name: Symbol}: of each the version that a program linked in that release got."""
    found = {}
    listing = subprocess.run(["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    for address, size, kind, binding, name, version in (m.groups() for m in map(SYMBOL.match, listing.splitlines()) if m):
        if number(version) <= newest and (name not in found or number(version) > number(found[name].version)):
            found[name] = Symbol(version, kind, binding, int(address, 16), int(size, 0))
    if not found:
        raise SystemExit(f"stubs.py: {library} has no symbols up to GLIBC_{'.'.join(map(str, newest))}; is it glibc's for x86-64?")
    return found


def assembler(symbols):
    """Names of one variable (environ, __environ) keep one address and who of them is weak: a program that gets a copy of the variable
    must get it under all its names, or the C library sets one and the program reads the other."""
    yield ".text"
    for name, symbol in symbols.items():
        if symbol.kind != "OBJECT":
            yield f".globl {name}\n.type {name}, @function\n{name}:"
    yield "nop\n.data"
    variables = {}
    for name, symbol in symbols.items():
        if symbol.kind == "OBJECT":
            variables.setdefault(symbol.address, []).append((name, symbol))
    for names in variables.values():
        yield ".balign 32"
        for name, symbol in names:
            yield f"{'.weak' if symbol.binding == 'WEAK' else '.globl'} {name}\n.type {name}, @object\n.size {name}, {symbol.size}\n{name}:"
        yield f".zero {max(1, *(symbol.size for _, symbol in names))}"
    yield '.section .note.GNU-stack,"",@progbits\n'


def version_script(symbols):
    for version in sorted({symbol.version for symbol in symbols.values()}, key=number):
        names = " ".join(f"{name};" for name, symbol in symbols.items() if symbol.version == version)
        yield f"GLIBC_{version} {{ {names} }};\n"


def write_stub(folder, soname, newest, compiler):
    library = subprocess.run([compiler, f"-print-file-name={soname}"], capture_output=True, text=True, check=True).stdout.strip()
    symbols = symbols_of(library, newest)
    source, script = folder / f"{soname}.s", folder / f"{soname}.map"
    source.write_text("\n".join(assembler(symbols)))
    script.write_text("".join(version_script(symbols)))
    subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}", "-o", folder / soname,
                    source], check=True)


def main():
    folder, newest, compiler, younger = Path(sys.argv[1]).resolve(), number(sys.argv[2]), sys.argv[3], Path(sys.argv[4]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for soname in STUBBED:
        write_stub(folder, soname, newest, compiler)
    loader = folder / "ld-linux-x86-64.so.2"
    (folder / "libm.so").write_text(f"INPUT ( {folder}/libm.so.6 )\n")
    (folder / "libc.so").write_text(f"GROUP ( {folder}/libc.so.6 {younger} libc_nonshared.a AS_NEEDED ( {loader} ) )\n")


main()
