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
in_graph_loop: Callable[[], bool] = lambda: False       # what is being traced lies in a loop of the graph
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


_meanings: Dict[int, Any] = {}


def meaning_of(variable: Any) -> Any:
    """What one of the framework's variables is, or None; looked up anew when variables were made since."""
    if not _meanings:
        _meanings.update(describe_variables())
    return _meanings.get(id(variable))


_done = 0
_untold = False                 # variables were made since the last tags
_tagged_for_new = 0


def variable_made() -> None:
    global _untold
    _untold = True
    _meanings.clear()


def step_done() -> None:
    """One training step is over."""
    global _done, _untold, _tagged_for_new
    _done += 1
    # A loop that makes variables in every step is told of less and less often.
    new = _untold and (_tagged_for_new < 16 or _done % 64 == 0)
    if new or _done in _tag_at:
        _tagged_for_new += new
        _untold = False
        tag_variables()
    after_step(_done)


def next_step() -> int:
    return next(_steps)


_eager_optimizer = False        # an optimizer was applied outside of any function: that is where steps end


def optimizer_applied() -> None:
    """Eager mode: in a loop of the user's own this is where a step ends."""
    global _eager_optimizer
    if not inside_loop():
        _eager_optimizer = True
        emit.instant(STEP, "optimizer", next_step())
        step_done()


class Traced:
    """What is known about one tf.function from its tracing."""

    __slots__ = ("applies_optimizer", "takes_gradients", "loops", "calls")

    def __init__(self) -> None:
        self.applies_optimizer = self.takes_gradients = self.loops = False
        self.calls = 0

    @property
    def trains(self) -> bool:
        """One call is one training step. Without an optimizer in it, only if none is applied elsewhere."""
        return self.applies_optimizer or (self.takes_gradients and not _eager_optimizer)

    @property
    def kind_of_step(self) -> Optional[str]:
        """None: it applies the optimizer once. Gradients alone are no step where an optimizer is applied to them later."""
        return "loop" if self.loops else None if self.applies_optimizer else "gradients"


def note_optimizer() -> None:
    """The functions that are being traced now apply an optimizer."""
    loops = in_graph_loop()
    for function in tracing_stack():
        function.applies_optimizer = True
        function.loops = function.loops or loops


def note_gradients() -> None:
    """The functions that are being traced now differentiate something."""
    for function in tracing_stack():
        function.takes_gradients = True


def tracing_stack() -> List[Traced]:
    if not hasattr(_thread, "tracing"):
        _thread.tracing = []
    return _thread.tracing
