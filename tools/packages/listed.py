"""Reads tools/packages.txt."""
import sys
from dataclasses import dataclass

SECTIONS = ["build", "test", "presubmit"]  # each may use what those before it list


@dataclass(frozen=True)
class Line:
    package: str
    section: str


@dataclass(frozen=True)
class Need:
    """Something of the system that the checkout uses."""
    what: str  # an absolute path, or the name of a command
    section: str
    named: bool  # by ourselves, not only by something that we use
    used_by: str


def refuse(why):
    """Ends the program with exit code 2: nothing was compared."""
    print(f"packages: {why}", file=sys.stderr)
    raise SystemExit(2)


def read_list(path):
    lines, section = [], None
    for number, text in enumerate(path.read_text().splitlines(), 1):
        text = text.partition("#")[0].strip()
        if text.startswith("["):
            section = text.strip("[]")
            if section not in SECTIONS:
                refuse(f"{path}:{number}: there is no section [{section}]; write one of {', '.join(SECTIONS)}")
        elif text:
            if section is None:
                refuse(f"{path}:{number}: {text} stands before the first section; put [{SECTIONS[0]}] above it")
            lines.append(Line(text.removeprefix("?").removeprefix("@node").strip(), section))
    return lines
