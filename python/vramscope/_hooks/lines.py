"""Which line of the user's own code is running: the innermost frame outside the frameworks and the standard library."""
from __future__ import annotations

import os
import sys
import sysconfig
from types import CodeType, FrameType
from typing import Callable, Dict, NamedTuple, Optional, Tuple


class Line(NamedTuple):
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


# Folders below site-packages whose code is not the user's.
_FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "tensorflow_estimator", "numpy", "wrapt", "absl", "optree", "dm_tree", "tree", "torch",
               "lightning", "IPython", "ipykernel", "traitlets", "tornado", "_pytest", "pluggy")
_STANDARD = os.path.normpath(sysconfig.get_paths()["stdlib"]) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_GENERATED = "__autograph_generated_file"
_is_user: Dict[CodeType, bool] = {}
# Lines of generated code -> the lines it was made from; set by the TensorFlow hook (AutoGraph).
source_map: Callable[[], Dict[Tuple[str, int], Tuple[str, int, str]]] = dict


def _decide(file: str) -> bool:
    if file.startswith("<") and not file.startswith("<ipython-input"):
        return False
    if file.startswith(_PACKAGE):
        return False
    parts = file.split(os.sep)
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            after = parts[parts.index(folder) + 1:]
            return bool(after) and after[0].split(".")[0] not in _FRAMEWORKS
    return not file.startswith(_STANDARD)


def is_user(code: CodeType, line: Optional[int] = None) -> bool:
    """Generated code is whose code it was made from; the line that runs tells."""
    known = _is_user.get(code)
    if known is None:
        file = code.co_filename
        if _GENERATED in file and line is not None:
            file = source_map().get((file, line), (file,))[0]
        known = _is_user[code] = _decide(file)
    return known


def of_frame(frame: FrameType) -> Line:
    code, number = frame.f_code, frame.f_lineno
    if _GENERATED in code.co_filename:
        origin = source_map().get((code.co_filename, number))
        if origin is not None:
            return Line(*origin)
    return Line(code.co_filename, number, code.co_name)


def user_frame(frame: Optional[FrameType] = None, stop: Optional[FrameType] = None) -> Optional[FrameType]:
    """From `frame` (the caller's) outwards; None if there is none before `stop`."""
    frame = frame or sys._getframe(1)
    known = _is_user
    while frame is not None and frame is not stop:
        code = frame.f_code
        if known.get(code) or (code not in known and is_user(code, frame.f_lineno)):
            return frame
        frame = frame.f_back  # type: ignore[assignment]
    return None


def user_line(frame: Optional[FrameType] = None) -> Optional[Line]:
    found = user_frame(frame or sys._getframe(1))
    return None if found is None else of_frame(found)
