"""The `vramscope` command of an installed wheel: runs the native program in its place."""
from __future__ import annotations

import os
import sys

from vramscope import _files


def main() -> None:
    program = _files.find(_files.PROGRAM)
    if program is None:
        sys.exit("vramscope: the program is missing from this installation; reinstall the wheel")
    os.execv(program, [str(program), *sys.argv[1:]])
