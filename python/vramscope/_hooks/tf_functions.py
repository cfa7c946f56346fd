"""tf.function: tracing as a phase, retracing with its reason, and which calls are training steps."""
from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any, Callable, Dict, Optional, Set, Tuple

from .._recorder import BEGIN, END, FUNCTION, PHASE, RETRACE, STEP
from . import emit, lines, tf_variables, training
from .wrapping import wrap

_known: Dict[Any, Set[Tuple[int, str]]] = {}       # code object -> (function, signature) seen
_last_signature: Dict[Any, str] = {}


def install(tf: ModuleType) -> None:
    from tensorflow.python.eager import context
    from tensorflow.python.eager.polymorphic_function import polymorphic_function, tracing_compilation
    from tensorflow.python.util import tf_decorator

    def make_trace(original: Callable[..., Any]) -> Callable[..., Any]:
        def trace(function_type: Any, type_context: Any, func_graph: Any, tracing_options: Any) -> Any:
            name = getattr(tracing_options, "name", None) or "function"
            emit.quietly(lambda: _tracing(name, tf_decorator.unwrap(tracing_options.python_function)[1], function_type))
            emit.mark(PHASE, BEGIN, "trace", -1, name)
            try:
                return original(function_type, type_context, func_graph, tracing_options)
            finally:
                if context.executing_eagerly():         # the outermost function
                    emit.quietly(tf_variables.traced)
                emit.mark(PHASE, END, "trace", -1, name)
        return trace

    def make_call(original: Callable[..., Any]) -> Callable[..., Any]:
        known: "weakref.WeakKeyDictionary[Any, training.Traced]" = weakref.WeakKeyDictionary()

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            about = known.get(self)
            if about is None:
                about = known[self] = training.Traced()
            stack = training.tracing_stack()
            stack.append(about)
            outermost = len(stack) == 1 and context.executing_eagerly()
            driven = training.inside_loop()
            try:
                if not outermost or driven:
                    return original(self, *args, **kwargs)
                return _counted(original, self, about, args, kwargs)
            finally:
                stack.pop()
        return call

    wrap(tracing_compilation, "_create_concrete_function", make_trace)
    wrap(polymorphic_function.Function, "__call__", make_call)


def _counted(original: Callable[..., Any], function: Any, about: training.Traced, args: tuple, kwargs: dict) -> Any:
    """A call from the user's own loop. Whether it trains is known from its tracing: of the first call, not before it ends."""
    name = function._name
    training.function_called()
    trains = about.trains
    number = training.next_step() if trains else -1
    emit.mark(STEP if trains else FUNCTION, BEGIN, name, number)
    try:
        return original(function, *args, **kwargs)
    finally:
        if trains:
            emit.mark(STEP, END, name, number, about.kind_of_step)
        else:
            emit.mark(FUNCTION, END, name, number, about.kind_of_step if about.trains else None)
        about.calls += 1
        if about.takes_gradients and not about.optimizers:
            training.gradients_taken()
        if about.trains:
            training.step_done()
        elif about.calls == 2:          # a program without training steps: its variables are told once all the same
            training.tag_variables()


def _signature(function_type: Any) -> str:
    return ", ".join(f"{name}: {parameter.type_constraint}" for name, parameter in function_type.parameters.items())


def _tracing(name: str, function: Callable[..., Any], function_type: Any) -> None:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    signature = _signature(function_type)
    seen = _known.setdefault(code, set())
    before = len(seen)
    seen.add((id(function), signature))
    reason: Optional[str] = None
    if before and len(seen) > before and lines.is_user(code):
        last = _last_signature.get(code, "")
        reason = "the function object is made anew each time" if signature == last else f"{last} -> {signature}"
        where = f"{code.co_filename}:{code.co_firstlineno}"
        emit.instant(RETRACE, name, len(seen), where)
        if len(seen) in (3, 5, 10, 30, 100, 300, 1000):
            emit.fact("retrace", key=where, function=name, traces=len(seen), reason=reason[:300], file=code.co_filename,
                      line=code.co_firstlineno)
    _last_signature[code] = signature
