#!/usr/bin/env python3
"""Compares tools/packages.txt with what the build and the scripts really use, so that a package that this machine happens to have
cannot be missing from the list, and none stays in it that nothing needs.

    tools/check_packages.py [LIST]      wants a complete build in build/ (VRAMSCOPE_BUILD)

What we name ourselves (archives and libraries on a link line, commands in scripts) must be in a listed package; what comes along with it
(headers that headers include) in one that a listed package depends on. Packages that every Debian has need no line.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from packages import build_needs, script_needs
from packages.listed import SECTIONS, read_list
from packages.system import System

ROOT = Path(__file__).resolve().parent.parent


def collect(root, build, system):
    """[(need, package or None)]: everything that the checkout uses of the system it is built on, and whose it is."""
    needs = [*build_needs.needs(build), *script_needs.needs(root)]
    owners = system.owners(needs)
    return [(need, owners.get(need)) for need in needs]


def check(listed, owned, system):
    """Yields what is wrong with the list. Sections add up: [test] may use what [build] lists, not the other way round."""
    seen = set()
    for line in listed:
        if line.package in seen:
            yield f"{line.package} is listed twice"
        seen.add(line.package)

    used = set()
    for position, section in enumerate(SECTIONS):
        names = {line.package for line in listed if line.section in SECTIONS[:position + 1]}
        closure = system.closure(names)
        for need, owner in owned:
            if need.section != section or system.is_base(owner):
                continue
            if owner is None:
                yield f"{need.what}, used by {need.used_by}, belongs to no package of this system"
            elif owner not in (names if need.named else closure):
                yield f"[{section}] lacks {owner}: {need.what} is used by {need.used_by}"
            if owner in names:
                used.add((owner, section))
            elif not need.named:
                through = [name for name in names if owner in system.closure({name})]
                used |= {(name, section) for name in through if len(through) == 1}

    for line in listed:
        sections = {section for name, section in used if name == line.package}
        if not sections:
            yield f"nothing needs {line.package}"
        elif line.section not in sections:
            yield f"{line.package} is needed by [{', '.join(sorted(sections))}] alone, not by [{line.section}]"


def main():
    listed = read_list(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tools/packages.txt")
    system = System()
    owned = collect(ROOT, build_needs.folder(ROOT), system)
    errors = sorted(set(check(listed, owned, system)))
    print(*errors, sep="\n", end="\n" if errors else "")
    print(f"packages: {len(errors)} findings" if errors else f"packages: ok, {len(listed)} packages for {len(owned)} headers, libraries and commands")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
