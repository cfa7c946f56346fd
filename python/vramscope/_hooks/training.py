"""The training loop as seen by the hooks: what drives it, and what to do after a step. It is independent of frameworks, whose
hooks fill in the functions."""
from __future__ import annotations

import itertools
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, Set

from .._schema import CHECK, FUNCTION, STEP
from . import emit, lines

_thread = threading.local()
_loops = 0                      # running Keras loops: they number the steps
_loop_frames: List[int] = []       # addresses of the user's frames that called them, valid as long as the loops run
_steps = itertools.count(1)
_tag_at = (1, 2, 3, 10, 100, 1000)

# Filled in by the framework's hook.
is_tracing: Callable[[], bool] = lambda: False
in_graph_loop: Callable[[], bool] = lambda: False       # whether what is being traced is in a loop of the graph
tag_by_address: Callable[[Dict[int, Any]], None] = lambda meanings: None
describe_variables: Callable[[], Dict[int, Any]] = dict
tag_assigned: Callable[[], None] = lambda: None         # the variables that were given new values outside of training
after_step: Callable[[int], None] = lambda step: None
before_tags: List[Callable[[], None]] = []              # called when variables are reported
after_some_steps: List[Callable[[int], None]] = []      # called where variables are reported too


def enter_loop() -> None:
    """A loop of Keras starts: fit, evaluate or predict."""
    global _loops
    _loops += 1
    enter_single_batch()


def enter_single_batch() -> None:
    """train_on_batch and similar. The loop is the user's, and counts its own steps."""
    found = lines.user_frame(sys._getframe(1))
    _loop_frames.append(0 if found is None else id(found))


def leave_single_batch() -> None:
    if _loop_frames:
        _loop_frames.pop()


def leave_loop() -> None:
    global _loops
    _loops = max(0, _loops - 1)
    leave_single_batch()


class _Passes(threading.local):
    """Running calls of predict() and evaluate(), from their first line on. They make datasets of their own, which are gone when they return."""
    running = 0


passes = _Passes()


def loop_frame() -> int:
    """Address of the user's frame that called fit(), evaluate(), predict() or one batch of them; 0: none."""
    return _loop_frames[-1] if _loop_frames else 0


def inside_loop() -> bool:
    return _loops > 0


def tag_variables() -> None:
    """Reports the addresses of parameters and optimizer slots. Takes tens of microseconds per variable, so it runs at epoch
    boundaries and after the first steps."""
    for tell in before_tags:
        emit.quietly(tell)
    emit.quietly(lambda: tag_by_address(describe_variables()))


_meanings: Dict[int, Any] = {}


def meaning_of(variable: Any) -> Any:
    """The description of one of the framework's variables, or None; looked up again if variables or layers were created since."""
    if not _meanings:
        _meanings.update(describe_variables())
    return _meanings.get(id(variable))


_done = 0
_unreported = False                 # variables were created since the last tags
_tagged_for_new = 0
_assigned = False                   # variables were given new values since the last tags, which may be in other blocks
_tagged_for_assigned = 0


def structure_changed() -> None:
    _meanings.clear()


def variable_made() -> None:
    global _unreported
    _unreported = True
    structure_changed()


def variable_assigned() -> None:
    global _assigned
    _assigned = True


def step_done() -> None:
    """One training step has ended."""
    global _done, _unreported, _tagged_for_new, _assigned, _tagged_for_assigned
    _done += 1
    # A loop that creates variables in every step is reported less and less often.
    new = _unreported and (_tagged_for_new < 16 or _done % 64 == 0)
    if new or _done in _tag_at:
        _tagged_for_new += new
        _unreported = _assigned = False
        tag_variables()
    elif _assigned and (_tagged_for_assigned < 16 or _done % 16 == 0):
        _assigned = False
        _tagged_for_assigned += 1
        emit.quietly(tag_assigned)
    if _done in _tag_at:
        for look in after_some_steps:
            look(_done)
    after_step(_done)


def steps_done() -> int:
    return _done


def _in_another_process() -> None:
    """A forked child has its own trace: everything has to be reported again there, and no loop is running in it."""
    global _done, _unreported, _tagged_for_new, _loops, _steps, _samples
    _done, _unreported, _tagged_for_new, _loops, _steps, _samples = 0, True, 0, 0, itertools.count(1), -1
    _loop_frames.clear()


os.register_at_fork(after_in_child=_in_another_process)


def next_step() -> int:
    return next(_steps)


_samples = -1                       # of the last batch, as reported


def _new_recording() -> None:
    global _samples
    _samples = -1


emit.at_first_event(_new_recording)


def batch_seen(samples: int) -> None:
    """From the step that comes on, batches have so many samples."""
    global _samples
    if samples != _samples:
        _samples = samples
        emit.instant(CHECK, "samples", samples)


_eager_optimizer = False        # an optimizer was applied outside any function: steps end there
_optimizers: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
_optimizer_numbers = itertools.count(1)         # how many there are now is no number: some are gone
_variables: Dict[str, int] = {}


def number_of(optimizer: Any) -> int:
    """The number of an optimizer. Once one has a number, variables are not considered to be written by hand."""
    number = _optimizers.get(optimizer)
    if number is None:
        number = _optimizers[optimizer] = next(_optimizer_numbers)
    return number


def by_hand(variable: Any) -> str:
    """What applies gradients if no optimizer does. Updates by hand are distinguished by the variable that each writes first."""
    return f"v{_variables.setdefault(variable._unique_id, len(_variables) + 1)}"


def optimizer_applied(optimizer: Any) -> None:
    """Eager mode: in a custom loop, a step ends here. The optimizer is passed to detect iterations in which several take turns."""
    global _eager_optimizer
    if not inside_loop():
        _eager_optimizer = True
        emit.instant(STEP, "optimizer", next_step(), f"@{number_of(optimizer)}")
        step_done()


_gradients_taken = False        # outside functions, or by calling one, since variables were last written by hand
_writing = False                # nothing else was done since


def gradients_taken() -> None:
    global _gradients_taken, _writing
    _gradients_taken, _writing = True, False


def function_called() -> None:
    global _writing
    _writing = False


def variable_written(variable: Any) -> None:
    """Eager mode: a trainable variable gets a new value. After gradients were computed, the first such update ends a step, and
    those that follow immediately move that end."""
    global _gradients_taken, _writing, _eager_optimizer
    if inside_loop() or _optimizers or not (_gradients_taken or _writing):
        return
    first, _gradients_taken, _writing, _eager_optimizer = _gradients_taken, False, True, True
    if first:
        emit.instant(STEP, "optimizer", next_step(), f"@{by_hand(variable)}")
        step_done()
    else:
        emit.instant(FUNCTION, "optimizer", -1, f"more@{by_hand(variable)}")


class Traced:
    """What is known about one tf.function from tracing it."""

    __slots__ = ("optimizers", "takes_gradients", "writes", "loops", "calls")

    def __init__(self) -> None:
        self.optimizers: Set[int] = set()
        self.takes_gradients = self.loops = False
        self.writes = ""            # the first variable that is written by hand
        self.calls = 0

    @property
    def trains(self) -> bool:
        """Whether one call is one training step. Without an optimizer in it, it is one only if none is applied elsewhere."""
        return bool(self.optimizers) or self._writes_by_hand or (self.takes_gradients and not _eager_optimizer)

    @property
    def _writes_by_hand(self) -> bool:
        return bool(self.writes) and not _optimizers

    @property
    def kind_of_step(self) -> str:
        """"step" if it applies gradients once. Gradients alone are not a step if they are applied later. Also returns what
        applies them."""
        if self.loops:
            return f"loop{self._by}"
        return f"step{self._by}" if self._by else "gradients"

    @property
    def _by(self) -> str:
        if self.optimizers:
            return "@" + "+".join(map(str, sorted(self.optimizers)))
        return f"@{self.writes}" if self._writes_by_hand else ""


def note_optimizer(optimizer: Any) -> None:
    """The functions being traced now apply an optimizer."""
    loops, number = in_graph_loop(), number_of(optimizer)
    for function in tracing_stack():
        function.optimizers.add(number)
        function.loops = function.loops or loops


def note_write(variable: Any) -> None:
    """The functions being traced now write a trainable variable."""
    loops = in_graph_loop()
    for function in tracing_stack():
        function.writes = function.writes or by_hand(variable)
        function.loops = function.loops or (loops and not _optimizers)


def note_gradients() -> None:
    """The functions being traced now differentiate something."""
    for function in tracing_stack():
        function.takes_gradients = True


def tracing_stack() -> List[Traced]:
    if not hasattr(_thread, "tracing"):
        _thread.tracing = []
    return _thread.tracing
