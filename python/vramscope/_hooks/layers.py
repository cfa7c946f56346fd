"""Which layer of the network is being called, under the name that `model.summary()` shows.

Kept by Keras' hook, read by TensorFlow's: at tracing time it tells whose op is being made, in eager mode it becomes a mark.
"""
from __future__ import annotations

import threading
import weakref
from types import FrameType
from typing import Any, Dict, List, NamedTuple, Optional

from . import lines


class Call(NamedTuple):
    path: str                       # "block_2/attention"; the outermost model itself has the path ""
    built: Optional[lines.Line]     # where the layer was made
    frame: Optional[FrameType]      # the frame inside which the layer runs


class _Thread(threading.local):
    def __init__(self) -> None:
        self.calls: List[Call] = []


_thread = _Thread()
_built: Dict[int, lines.Line] = {}
_eager_scopes: Dict[str, Call] = {}     # name scope in eager mode -> layer


def current() -> Optional[Call]:
    calls = _thread.calls
    return calls[-1] if calls else None


def push(call: Call) -> None:
    _thread.calls.append(call)


def pop() -> None:
    _thread.calls.pop()


def frame_around(call: Call) -> Optional[FrameType]:
    """The frame of the layer that calls this one; None if it is the outermost."""
    for inner, outer in zip(reversed(_thread.calls), reversed(_thread.calls[:-1])):
        if inner is call:
            return outer.frame
    return None


def outermost_frame() -> Optional[FrameType]:
    """The frame in which the outermost running layer was called."""
    return _thread.calls[0].frame if _thread.calls else None


def path_below(parent: Optional[Call], name: str, is_model: bool) -> str:
    if parent is None:
        return "" if is_model else name
    return f"{parent.path}/{name}" if parent.path else name


def remember_built(layer: Any, line: Optional[lines.Line]) -> None:
    """Where a layer was made. A layer that another layer makes for itself counts as made where that one was."""
    if line is not None:
        _built[id(layer)] = line
        weakref.finalize(layer, _built.pop, id(layer), None)


def built(layer: Any) -> Optional[lines.Line]:
    return _built.get(id(layer))


def note_eager_scope(scope: str, call: Call) -> None:
    """Eager mode: ops inside this name scope belong to the layer; the backward pass names only the scope."""
    if scope not in _eager_scopes:
        _eager_scopes[scope] = call._replace(frame=None)


def of_eager_scope(scope: str) -> Optional[Call]:
    name = scope.rstrip("/")
    while name:
        call = _eager_scopes.get(name)
        if call is not None:
            return call
        name = name.rpartition("/")[0]
    return None
