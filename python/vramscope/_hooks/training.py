"""The training loop as the hooks see it: who drives it, what to do after a step. Knows no framework; they fill in the functions."""
from __future__ import annotations

import itertools
import sys
import threading
from types import FrameType
from typing import Any, Callable, Dict, List, Optional

from .._recorder import STEP
from . import emit, lines

_thread = threading.local()
_loops = 0                      # Keras loops that are running: they number the steps
_loop_frames: List[Optional[FrameType]] = []
_steps = itertools.count(1)
_tag_at = (1, 2, 3, 10, 100, 1000)

# Filled in by the framework's hook.
is_tracing: Callable[[], bool] = lambda: False
eager_scope: Callable[[], str] = lambda: ""
tag_by_address: Callable[[Dict[int, Any]], None] = lambda meanings: None
describe_variables: Callable[[], Dict[int, Any]] = dict
after_step: Callable[[int], None] = lambda step: None


def enter_loop() -> None:
    """A loop of Keras' own begins: fit, evaluate or predict."""
    global _loops
    _loops += 1
    _loop_frames.append(lines.user_frame(sys._getframe(1)))


def leave_loop() -> None:
    global _loops
    _loops = max(0, _loops - 1)
    if _loop_frames:
        _loop_frames.pop()


def loop_frame() -> Optional[FrameType]:
    """The user's frame that called fit(), evaluate() or predict()."""
    return _loop_frames[-1] if _loop_frames else None


def inside_loop() -> bool:
    return _loops > 0


def tag_variables() -> None:
    """Says where parameters and optimizer slots lie. Tens of microseconds a variable: at the edges of epochs and after the first steps."""
    emit.quietly(lambda: tag_by_address(describe_variables()))


_done = 0


def step_done() -> None:
    """One training step is over."""
    global _done
    _done += 1
    if _done in _tag_at:
        tag_variables()
    after_step(_done)


def next_step() -> int:
    return next(_steps)


def optimizer_applied() -> None:
    """Eager mode: in a loop of the user's own this is where a step ends."""
    if not inside_loop():
        emit.instant(STEP, "optimizer", next_step())
        step_done()


def note_training_function() -> None:
    """The function that is being traced now applies an optimizer: its calls are training steps."""
    for function in getattr(_thread, "tracing", ()):
        function.trains = True


class Traced:
    """What is known about one tf.function."""

    __slots__ = ("trains", "calls")

    def __init__(self) -> None:
        self.trains = False
        self.calls = 0


def tracing_stack() -> list:
    if not hasattr(_thread, "tracing"):
        _thread.tracing = []
    return _thread.tracing
