"""Finds the program and the libraries: next to the package in a wheel, in the build tree of a checkout, where Debian puts them."""
from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Iterator, Optional

INJECT = "libvramscope_inject.so"
TFOPS = "libvramscope_tfops.so"
PROGRAM = "vramscope"

_PACKAGE = Path(__file__).resolve().parent
_HOW_TO_INSTALL = "install the vramscope wheel, or build it and set VRAMSCOPE_BUILD"


def _folders() -> Iterator[Path]:
    if os.environ.get("VRAMSCOPE_BUILD"):
        yield Path(os.environ["VRAMSCOPE_BUILD"])
    for name in ("_bin", "bin", "lib"):
        yield _PACKAGE / name
    yield _PACKAGE.parents[1] / "build"
    yield _PACKAGE.parents[1]                   # of the Debian package: lib/vramscope, and the program in bin
    if len(_PACKAGE.parents) > 3:
        yield _PACKAGE.parents[3] / "bin"


def find(name: str) -> Optional[Path]:
    """The path of one of our files, or None."""
    for folder in _folders():
        if (folder / name).is_file():
            return folder / name
    return None


def library(name: str) -> Path:
    path = find(name)
    if path is None:
        places = ", ".join(str(folder) for folder in _folders())
        raise OSError(f"{name}: not in {places}; {_HOW_TO_INSTALL}")
    return path


def program() -> str:
    """The path of the `vramscope` program. Raises OSError if it is missing."""
    path = find(PROGRAM) or shutil.which(PROGRAM)
    if path is None:
        raise OSError(f"the vramscope program was not found; {_HOW_TO_INSTALL}")
    return str(path)
