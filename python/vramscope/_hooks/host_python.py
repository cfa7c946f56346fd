"""Memory of Python and NumPy by the line that allocated it, where `vramscope run --host python` asks for it.

Python's own tracemalloc counts it, from the import of the framework on. It makes allocating slower, so it is never on by itself.
"""
from __future__ import annotations

import atexit
import os
import tracemalloc
from typing import Dict, List, Tuple

from . import emit, lines, training

_NUMPY = 389047                 # the domain that NumPy gives to tracemalloc
_FRAMES = 4                     # enough to reach the user's line above NumPy's own
_MOST_LINES = 24
_FIRST_LOOK = 10                # steps; a look takes seconds
_look = 0
_started = False


def start() -> None:
    """Called when a framework was imported: counting from the interpreter's start on would make the import ten times as slow."""
    global _started
    if _started or os.environ.get("VRAMSCOPE_HOST") != "python":
        return
    _started = True
    if not tracemalloc.is_tracing():
        tracemalloc.start(_FRAMES)
    training.after_some_steps.append(lambda step: emit.quietly(_report) if step >= _FIRST_LOOK else None)
    atexit.register(emit.quietly, _report)


def _place(frames: Tuple[Tuple[str, int], ...], user: Dict[str, bool]) -> Tuple[str, int]:
    """The user's innermost line; empty if there is none. `user` remembers which files are the user's."""
    for file, line in frames:
        known = user.get(file)
        if known is None:
            known = user[file] = lines.is_user_file(file)
        if known:
            return file, line
    return "", 0


def _report() -> None:
    global _look
    _look += 1
    sums: Dict[Tuple[str, str, int], List[int]] = {}
    user: Dict[str, bool] = {}
    # As tracemalloc has them: domain, size, frames from the innermost on. An object for each of a million blocks would take a minute.
    for domain, size, frames, *_ in tracemalloc.take_snapshot().traces._traces:  # type: ignore[attr-defined]
        found = sums.setdefault(("numpy" if domain == _NUMPY else "python", *_place(frames, user)), [0, 0])
        found[0] += size
        found[1] += 1
    most = sorted(sums.items(), key=lambda item: -item[1][0])
    rest: Dict[str, List[int]] = {}
    for place, ((kind, file, line), (size, blocks)) in enumerate(most):
        if file and place < _MOST_LINES:
            emit.report("host_line", kind=kind, file=file, line=line, look=_look, bytes=size, blocks=blocks)
        else:
            other = rest.setdefault(kind, [0, 0])
            other[0] += size
            other[1] += blocks
    for kind, (size, blocks) in rest.items():
        emit.report("host_line", kind=kind, file="", line=0, look=_look, bytes=size, blocks=blocks)
