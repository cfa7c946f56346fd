"""tf.function: tracing as a phase with the host memory around it, retracing with its reason, and which calls are training steps."""
from __future__ import annotations

import functools
import itertools
import sys
import weakref
from types import ModuleType
from typing import Any, Callable, Dict, Optional, Set, Tuple

from .._schema import BEGIN, END, FUNCTION, PHASE, RETRACE, STEP
from . import emit, lines, tf_building, tf_traced, tf_variables, training
from .wrapping import wrap

_known: Dict[str, Set[Tuple[int, str]]] = {}       # "file:line name" of a function -> (its number, signature) seen
_numbers: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()      # of functions: an address is used again
_counter = itertools.count(1)
_last_signature: Dict[str, str] = {}


def install(tf: ModuleType) -> None:
    from tensorflow.python.eager import context
    from tensorflow.python.eager.polymorphic_function import polymorphic_function, tracing_compilation
    from tensorflow.python.util import tf_decorator

    def trace_begins(function_type: Any, type_context: Any, func_graph: Any, tracing_options: Any, *_: Any, **__: Any) -> tf_building.Trace:
        name = getattr(tracing_options, "name", None) or "function"
        function = tf_decorator.unwrap(tracing_options.python_function)[1]
        emit.quietly(lambda: _tracing(name, function, function_type))
        emit.mark(PHASE, BEGIN, "trace", -1, name)
        return tf_building.trace_begins(name, function, sys._getframe(1))

    def trace_ended(trace: Optional[tf_building.Trace], ok: bool, result: Any, function_type: Any, type_context: Any, func_graph: Any,
                    *_: Any, **__: Any) -> None:
        if trace is None:
            return
        if context.executing_eagerly():                 # the outermost function
            emit.quietly(tf_variables.traced)
        emit.mark(PHASE, END, "trace", -1, trace.name)
        tf_building.trace_ended(trace, ok, func_graph)

    known: "weakref.WeakKeyDictionary[Any, training.Traced]" = weakref.WeakKeyDictionary()

    def call_begins(function: Any, /, *_: Any, **__: Any) -> Tuple[training.Traced, Optional[int]]:
        about = known.get(function)
        if about is None:
            about = known[function] = training.Traced()
            emit.quietly(functools.partial(tf_traced.learn, about, function))
        stack = training.tracing_stack()
        stack.append(about)
        outermost = len(stack) == 1 and context.executing_eagerly()
        return about, _begin_counted(function._name, about) if outermost and not training.inside_loop() else None

    def call_ended(token: Tuple[training.Traced, Optional[int]], ok: bool, result: Any, function: Any, /, *_: Any, **__: Any) -> None:
        about, number = token
        training.tracing_stack().pop()
        if number is not None:
            _end_counted(function._name, about, number)

    wrap(tracing_compilation, "_create_concrete_function", trace_begins, trace_ended)
    wrap(polymorphic_function.Function, "__call__", call_begins, call_ended)


_NO_STEP = -1


def _begin_counted(name: str, about: training.Traced) -> int:
    """A call from the user's own loop: returns its number if it trains. That is known from tracing, and for the first call only
    when it ends."""
    training.function_called()
    number = training.next_step() if about.trains else _NO_STEP
    emit.mark(STEP if number != _NO_STEP else FUNCTION, BEGIN, name, number)
    return number


def _end_counted(name: str, about: training.Traced, number: int) -> None:
    if number != _NO_STEP:
        emit.mark(STEP, END, name, number, about.kind_of_step)
    else:
        emit.mark(FUNCTION, END, name, number, about.kind_of_step if about.trains else None)
    about.calls += 1
    if about.takes_gradients and not about.optimizers:
        training.gradients_taken()
    if about.trains:
        training.step_done()
    elif about.calls == 2:              # a program without training steps: its variables are reported once anyway
        training.tag_variables()


def _signature(function_type: Any) -> str:
    return ", ".join(f"{name}: {parameter.type_constraint}" for name, parameter in function_type.parameters.items())


def _tracing(name: str, function: Callable[..., Any], function_type: Any) -> None:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    signature = _signature(function_type)
    where = f"{code.co_filename}:{code.co_firstlineno}"
    place = f"{where} {code.co_name}"
    seen = _known.setdefault(place, set())
    before = len(seen)
    seen.add((_numbers.setdefault(function, next(_counter)), signature))
    reason: Optional[str] = None
    if before and len(seen) > before and lines.is_user(code):
        last = _last_signature.get(place, "")
        reason = "the function object is created again each time" if signature == last else f"{last} -> {signature}"
        emit.instant(RETRACE, name, len(seen), where)
        if len(seen) in (3, 5, 10, 30, 100, 300, 1000):
            emit.report("retrace", function=name, traces=len(seen), reason=reason[:300], file=code.co_filename, line=code.co_firstlineno)
    _last_signature[place] = signature
