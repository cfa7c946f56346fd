#!/usr/bin/env python3
"""Writes the man pages from what the program says about itself, so that they never differ from --help.

    tools/gen_man.py PROGRAM FOLDER      writes vramscope.1 and vramscope-VERB.1 into FOLDER
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

OPTION = re.compile(r"^  (\S.*?)(?: {2,}(.*))?$")
VERB = re.compile(r"^  ([a-z]+) +(\S.*)$")          # a long verb has only one space behind it
SECTIONS_OF_VERBS = {"Record", "Analyze", "Inspect", "Other"}


def help_of(program, *words):
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True)
    return done.stdout.rstrip().splitlines()


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def page(name, lines):
    """One page: the first line of the help is what the verb does, then come its usage and sections with options or examples."""
    summary = lines[0].rstrip(".").removeprefix("vramscope: ")
    out = [f'.TH "{name.upper()}" 1 "" "vramscope" "User Commands"', ".SH NAME", f"{escaped(name)} \\- {escaped(summary)}"]
    section = ""
    for line in lines[1:]:
        if not line.strip():
            continue
        if line.startswith("Usage:"):
            out += [".SH SYNOPSIS", escaped(line.removeprefix("Usage:").strip())]
        elif not line.startswith(" "):
            section = line.rstrip(":")
            out += [".SH " + escaped(section.upper())] if section.isalpha() else [".PP", escaped(line)]
        elif section == "Examples":
            out += [".PP", ".RS", ".nf", escaped(line.strip()), ".fi", ".RE"]
        elif match := (VERB if section in SECTIONS_OF_VERBS else OPTION).match(line):
            out += [".TP", f"\\fB{escaped(match.group(1))}\\fR", escaped(match.group(2) or "")]
        else:
            out.append(escaped(line.strip()))
    return "\n".join(out) + "\n"


def verbs_in(lines):
    section, found = "", []
    for line in lines:
        section = line if line and not line.startswith(" ") else section
        match = VERB.match(line)
        found += [match.group(1)] if match and section in SECTIONS_OF_VERBS else []
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    whole = help_of(args.program)
    (args.folder / "vramscope.1").write_text(page("vramscope", whole))
    verbs = verbs_in(whole)
    for verb in verbs:
        (args.folder / f"vramscope-{verb}.1").write_text(page(f"vramscope-{verb}", help_of(args.program, verb)))
    print(f"man: {len(verbs) + 1} pages in {args.folder}")
    return 0 if verbs else 1


if __name__ == "__main__":
    sys.exit(main())
