"""The line of the user's own code that is running: the innermost frame outside the frameworks and the standard library."""
from __future__ import annotations

import os
import stat
import sys
import sysconfig
import weakref
from types import CodeType, FrameType
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import emit, importing


class Line(NamedTuple):
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


# Packages whose code is not the user's, wherever they are installed.
_FRAMEWORKS = {"numpy", "IPython", "ipykernel", "traitlets", "tornado", "_pytest", "pluggy"}.union(
    *(framework["PACKAGES"] for framework in importing.FRAMEWORKS))
_STANDARD = os.path.normpath(sysconfig.get_paths()["stdlib"]) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_OWN = os.environ.get("VRAMSCOPE_SOURCE_ROOT", "")      # run --source-root
_OWN_FOLDERS = tuple({os.path.join(folder, "") for folder in (_OWN, os.path.realpath(_OWN))} if _OWN else ())

_LONGEST_SOURCE = 1 << 20
_GENERATED = "__autograph_generated_file"
known_codes: Dict[int, bool] = {}                   # whether it is the user's, by the address of a code object, as long as it exists
plain_codes: Set[int] = set()                       # those that are not; walking.py takes out what it wants to see
_alive: Dict[int, "weakref.ref[CodeType]"] = {}
_known_files: Dict[str, bool] = {}                  # the same by the name of a file
# Lines of generated code -> the lines it was generated from; set by the TensorFlow hook (AutoGraph).
source_map: Callable[[], Dict[Tuple[str, int], Tuple[str, int, str]]] = dict


def library_folders() -> List[str]:
    """Where the interpreter found the packages that are imported, and its own library."""
    found = [_STANDARD]
    for name in sorted(_FRAMEWORKS):
        attributes = getattr(sys.modules.get(name), "__dict__", {})         # asking the module itself may import more
        found += [os.path.join(folder, "") for folder in list(attributes.get("__path__") or ())]
    return found


def is_user_file(file: str) -> bool:
    if file.startswith("<") and not file.startswith("<ipython-input"):
        return False
    if file.startswith(_PACKAGE):
        return False
    if file.startswith(_OWN_FOLDERS):
        return True
    if file.startswith(tuple(library_folders())) and "site-packages" not in file and "dist-packages" not in file:
        return False
    parts = file.split(os.sep)
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            after = parts[parts.index(folder) + 1:]
            return bool(after) and after[0].split(".")[0] not in _FRAMEWORKS
    return not file.startswith(_STANDARD)


def report_folders() -> None:
    """Stacks are read outside, where no interpreter can be asked."""
    emit.setting("python.library_folders", os.pathsep.join(folder.rstrip(os.sep) for folder in library_folders()))
    if _OWN:
        emit.setting("python.source_root", _OWN.rstrip(os.sep))


def source(file: str) -> Optional[str]:
    """What a file of source code says; None for anything but a regular file. Opening a pipe would wait for its other end."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LONGEST_SOURCE:
            return None
        return os.read(opened, _LONGEST_SOURCE).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(opened)


def is_framework(module: str) -> bool:
    return module.split(".", 1)[0] in _FRAMEWORKS


def is_user(code: CodeType, line: Optional[int] = None) -> bool:
    """Generated code belongs to whoever wrote the code it was generated from; the running line decides."""
    address = id(code)
    known = known_codes.get(address)
    if known is None:
        file = code.co_filename
        if _GENERATED in file and line is not None:
            file = source_map().get((file, line), (file,))[0]
        known = _known_files.get(file)
        if known is None:
            known = _known_files[file] = is_user_file(file)
        known_codes[address] = known
        if not known:
            plain_codes.add(address)
        _alive[address] = weakref.ref(code, lambda _: _forget(address))
    return known


def _forget(address: int) -> None:
    known_codes.pop(address, None)
    plain_codes.discard(address)
    _alive.pop(address, None)


def of_frame(frame: FrameType) -> Line:
    code, number = frame.f_code, frame.f_lineno
    if _GENERATED in code.co_filename:
        origin = source_map().get((code.co_filename, number))
        if origin is not None:
            return Line(origin[0], origin[1], origin[2] or code.co_name)      # a lambda has none
    return Line(code.co_filename, number, code.co_name)


def user_frame(frame: Optional[FrameType] = None, stop: int = 0) -> Optional[FrameType]:
    """Searches from `frame` (the caller's) outward. None if there is none before the frame with the address `stop`. Do not keep
    the result."""
    frame = frame or sys._getframe(1)
    known = known_codes
    while frame is not None and id(frame) != stop:
        code = frame.f_code
        address = id(code)
        if known.get(address) or (address not in known and is_user(code, frame.f_lineno)):
            return frame
        frame = frame.f_back  # type: ignore[assignment]
    return None


def user_line(frame: Optional[FrameType] = None) -> Optional[Line]:
    found = user_frame(frame or sys._getframe(1))
    return None if found is None else of_frame(found)
