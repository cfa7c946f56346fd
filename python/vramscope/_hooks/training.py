"""The training loop as the hooks see it: who drives it, what to do after a step. Knows no framework; they fill in the functions."""
from __future__ import annotations

import itertools
import os
import sys
import threading
import weakref
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Set

from .._recorder import FUNCTION, STEP
from . import emit, lines

_thread = threading.local()
_loops = 0                      # Keras loops that are running: they number the steps
_loop_frames: List[Optional[FrameType]] = []
_steps = itertools.count(1)
_tag_at = (1, 2, 3, 10, 100, 1000)

# Filled in by the framework's hook.
is_tracing: Callable[[], bool] = lambda: False
in_graph_loop: Callable[[], bool] = lambda: False       # what is being traced lies in a loop of the graph
tensor_number: Callable[[], int] = lambda: 0            # of the tensor that would be made now; later ones have higher numbers
tag_by_address: Callable[[Dict[int, Any]], None] = lambda meanings: None
describe_variables: Callable[[], Dict[int, Any]] = dict
after_step: Callable[[int], None] = lambda step: None


def enter_loop() -> None:
    """A loop of Keras' own begins: fit, evaluate or predict."""
    global _loops
    _loops += 1
    _loop_frames.append(lines.user_frame(sys._getframe(1)))


class single_batch:
    """`with single_batch():` train_on_batch and the like. The loop is the user's, and counts its own steps."""

    def __enter__(self) -> None:
        _loop_frames.append(lines.user_frame(sys._getframe(1)))

    def __exit__(self, *_: object) -> None:
        if _loop_frames:
            _loop_frames.pop()


def leave_loop() -> None:
    global _loops
    _loops = max(0, _loops - 1)
    if _loop_frames:
        _loop_frames.pop()


def loop_frame() -> Optional[FrameType]:
    """The user's frame that called fit(), evaluate(), predict() or one batch of them."""
    return _loop_frames[-1] if _loop_frames else None


def inside_loop() -> bool:
    return _loops > 0


def tag_variables() -> None:
    """Says where parameters and optimizer slots lie. Tens of microseconds a variable: at the edges of epochs and after the first steps."""
    emit.quietly(lambda: tag_by_address(describe_variables()))


_meanings: Dict[int, Any] = {}


def meaning_of(variable: Any) -> Any:
    """What one of the framework's variables is, or None; looked up anew when variables or layers were made since."""
    if not _meanings:
        _meanings.update(describe_variables())
    return _meanings.get(id(variable))


_done = 0
_untold = False                 # variables were made since the last tags
_tagged_for_new = 0


def structure_changed() -> None:
    _meanings.clear()


def variable_made() -> None:
    global _untold
    _untold = True
    structure_changed()


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


def _in_another_process() -> None:
    """A child made by fork has a trace of its own: what this one was told is to be told there again, and no loop runs in it."""
    global _done, _untold, _tagged_for_new, _loops, _steps
    _done, _untold, _tagged_for_new, _loops, _steps = 0, True, 0, 0, itertools.count(1)
    _loop_frames.clear()


os.register_at_fork(after_in_child=_in_another_process)


def next_step() -> int:
    return next(_steps)


_eager_optimizer = False        # an optimizer was applied outside of any function: that is where steps end
_optimizers: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
_variables: Dict[str, int] = {}


def number_of(optimizer: Any) -> int:
    """Known from then on: variables are not written by hand any more."""
    return _optimizers.setdefault(optimizer, len(_optimizers) + 1)


def _by_hand(variable: Any) -> str:
    """Who applies gradients where no optimizer does: one update by hand is known from another by the variable that it writes first."""
    return f"v{_variables.setdefault(variable._unique_id, len(_variables) + 1)}"


def optimizer_applied(optimizer: Any) -> None:
    """Eager mode: in a loop of the user's own this is where a step ends. Which optimizer it was tells iterations in which several take
    turns."""
    global _eager_optimizer
    if not inside_loop():
        _eager_optimizer = True
        emit.instant(STEP, "optimizer", next_step(), f"@{number_of(optimizer)}")
        step_done()


_gradients_taken = False        # outside of functions, or by a call of one, since variables were last written by hand
_writing = False                # nothing else was done since


def gradients_taken() -> None:
    global _gradients_taken, _writing
    _gradients_taken, _writing = True, False


def function_called() -> None:
    global _writing
    _writing = False


def variable_written(variable: Any) -> None:
    """Eager mode: a trainable variable gets a new value. After gradients were taken the first of these ends a step, and those that
    follow at once move that end."""
    global _gradients_taken, _writing, _eager_optimizer
    if inside_loop() or _optimizers or not (_gradients_taken or _writing):
        return
    first, _gradients_taken, _writing, _eager_optimizer = _gradients_taken, False, True, True
    if first:
        emit.instant(STEP, "optimizer", next_step(), f"@{_by_hand(variable)}")
        step_done()
    else:
        emit.instant(FUNCTION, "optimizer", -1, f"more@{_by_hand(variable)}")


class Traced:
    """What is known about one tf.function from its tracing."""

    __slots__ = ("optimizers", "takes_gradients", "writes", "loops", "calls")

    def __init__(self) -> None:
        self.optimizers: Set[int] = set()
        self.takes_gradients = self.loops = False
        self.writes = ""            # the first variable that is written by hand
        self.calls = 0

    @property
    def trains(self) -> bool:
        """One call is one training step. Without an optimizer in it, only if none is applied elsewhere."""
        return bool(self.optimizers) or self._writes_by_hand or (self.takes_gradients and not _eager_optimizer)

    @property
    def _writes_by_hand(self) -> bool:
        return bool(self.writes) and not _optimizers

    @property
    def kind_of_step(self) -> str:
        """"step": it applies gradients once. Gradients alone are no step where they are applied later. And by whom they are applied."""
        if self.loops:
            return f"loop{self._by}"
        return f"step{self._by}" if self._by else "gradients"

    @property
    def _by(self) -> str:
        if self.optimizers:
            return "@" + "+".join(map(str, sorted(self.optimizers)))
        return f"@{self.writes}" if self._writes_by_hand else ""


def note_optimizer(optimizer: Any) -> None:
    """The functions that are being traced now apply an optimizer."""
    loops, number = in_graph_loop(), number_of(optimizer)
    for function in tracing_stack():
        function.optimizers.add(number)
        function.loops = function.loops or loops


def note_write(variable: Any) -> None:
    """The functions that are being traced now write a trainable variable."""
    loops = in_graph_loop()
    for function in tracing_stack():
        function.writes = function.writes or _by_hand(variable)
        function.loops = function.loops or (loops and not _optimizers)


def note_gradients() -> None:
    """The functions that are being traced now differentiate something."""
    for function in tracing_stack():
        function.takes_gradients = True


def tracing_stack() -> List[Traced]:
    if not hasattr(_thread, "tracing"):
        _thread.tracing = []
    return _thread.tracing
