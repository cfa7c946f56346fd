"""Where the program and the libraries lie: beside the package in a wheel, in the build tree of a checkout."""
from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Iterator, Optional

INJECT = "libvramscope_inject.so"
TFOPS = "libvramscope_tfops.so"
PROGRAM = "vramscope"

_PACKAGE = Path(__file__).resolve().parent


def _folders() -> Iterator[Path]:
    if os.environ.get("VRAMSCOPE_BUILD"):
        yield Path(os.environ["VRAMSCOPE_BUILD"])
    for name in ("_bin", "bin", "lib"):
        yield _PACKAGE / name
    yield _PACKAGE.parents[1] / "build"


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
        raise OSError(f"{name} is not in {places}: install the vramscope wheel, or build and set VRAMSCOPE_BUILD")
    return path


def program() -> str:
    """The `vramscope` program; OSError if there is none."""
    path = find(PROGRAM) or shutil.which(PROGRAM)
    if path is None:
        raise OSError("the vramscope program was not found: install the vramscope wheel, or build and set VRAMSCOPE_BUILD")
    return str(path)
