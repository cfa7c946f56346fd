"""Which layer of the network is being called, under the name that `model.summary()` shows.

Kept by Keras' hook, read by TensorFlow's: at tracing time it tells whose op is being made, in eager mode it becomes a mark.
"""
from __future__ import annotations

import bisect
import threading
import weakref
from types import FrameType
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from . import lines


# What lies outside of all layers, by what it is for.
OPTIMIZER = "(optimizer)"
LOSS = "(loss and metrics)"
ALL_REDUCE = "(all-reduce)"


class Call(NamedTuple):
    path: str                       # "block_2/attention"; the outermost model itself has the path ""
    built: Optional[lines.Line]     # where the layer was made
    frame: Optional[FrameType]      # the frame inside which the layer runs
    outside: str = ""               # what to call it where there is no path: "(net)" for what a model computes between its layers

    @property
    def label(self) -> str:
        return self.path or self.outside


_MANY = 1 << 16
_LOSS_CALL = Call("", None, None, LOSS)


# Eager mode. The backward pass of most ops is not told the name scope of the forward op. But tensors are numbered as they are made: what
# a layer's call made has a number between the ones at its begin and its end.
class Calls:
    """The calls of layers in one thread, in the order of their ends."""

    def __init__(self) -> None:
        self.begins: List[int] = []
        self.ends: List[int] = []
        self.calls: List[Call] = []
        self.last: Optional[Call] = None        # whose op was differentiated last

    def add(self, begin: int, end: int, call: Call) -> None:
        if len(self.ends) > _MANY:              # backward passes ask for the newest ones
            for kept in (self.begins, self.ends, self.calls):
                del kept[:_MANY // 2]
        self.begins.append(begin)
        self.ends.append(end)
        self.calls.append(call)

    def holding(self, number: int) -> Optional[Call]:
        """The innermost call that made this tensor; the loss if it was made after all of them."""
        for i in range(bisect.bisect_left(self.ends, number), len(self.ends)):
            if self.begins[i] <= number:
                return self.calls[i]
        return _LOSS_CALL if self.ends and number > self.ends[-1] else None


class _Thread(threading.local):
    def __init__(self) -> None:
        self.calls: List[Call] = []
        self.eager = Calls()


_thread = _Thread()
_built: Dict[int, lines.Line] = {}


def current() -> Optional[Call]:
    calls = _thread.calls
    return calls[-1] if calls else None


def push(call: Call) -> None:
    _thread.calls.append(call)


def pop() -> None:
    _thread.calls.pop()


class inside:
    """`with inside("(optimizer)"):` what runs outside of all layers, under the name of what it is for."""

    __slots__ = ("_call",)

    def __init__(self, name: str) -> None:
        self._call = Call("", None, None, name)

    def __enter__(self) -> None:
        push(self._call)

    def __exit__(self, *_: object) -> None:
        pop()


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


def eager_calls() -> Calls:
    return _thread.eager


def of_forward_op(tensors: Iterable[Any]) -> Optional[Call]:
    """Whose op it was, by what it read and made: the newest of those tensors. Where none was kept, as the op before."""
    calls = _thread.eager
    newest = max((getattr(tensor, "_id", -1) for tensor in tensors), default=-1)
    calls.last = (calls.holding(newest) if newest >= 0 else None) or calls.last
    return calls.last
