"""GradientTape: forward and backward phases in eager mode, layers of the backward ops, how long tapes live."""
from __future__ import annotations

import itertools
import sys
import weakref
from types import ModuleType
from typing import Any, Callable, Dict, Optional

from .._recorder import BEGIN, END, LAYER, TAPE
from . import buffers, emit, layers, lines, tf_graph, training
from .wrapping import wrap

_numbers = itertools.count(1)
_persistent_alive: Dict[int, str] = {}
_kept: Dict[str, int] = {}


def install(tf: ModuleType) -> None:
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import backprop
    from tensorflow.python.framework import ops

    _watch_gradient_functions(pywrap_tfe, backprop, ops)
    tape_type = backprop.GradientTape

    def make_init(original: Callable[..., Any]) -> Callable[..., Any]:
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if not training.is_tracing():
                _born(self, lines.user_line(sys._getframe(1)))
        return init

    def make_gradient(original: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            if training.is_tracing():
                training.note_gradients()
                result = original(self, target, sources, *args, **kwargs)
                emit.quietly(lambda: _name_gradients(tf, sources, result))
                return result
            training.gradients_taken()
            with emit.phase("backward"):
                return original(self, target, sources, *args, **kwargs)
        return gradient

    wrap(tape_type, "__init__", make_init)
    wrap(tape_type, "gradient", make_gradient)


def _watch_gradient_functions(pywrap: Any, backprop: Any, ops: Any) -> None:
    """TensorFlow calls one Python function for each op that it differentiates, with the name scope of the forward op."""
    original = backprop._gradient_function
    if hasattr(original, "__vramscope_original__"):
        return

    def gradient_function(op_name: Any, attr_tuple: Any, num_inputs: Any, inputs: Any, outputs: Any, out_grads: Any,
                          skip_input_indices: Any, forward_pass_name_scope: Any) -> Any:
        eager = not training.is_tracing()
        call = _forward_layer(None if eager else ops, inputs, outputs, forward_pass_name_scope)
        if call is not None:
            layers.push(call)
            if eager:
                emit.mark(LAYER, BEGIN, call.label)
        try:
            return original(op_name, attr_tuple, num_inputs, inputs, outputs, out_grads, skip_input_indices, forward_pass_name_scope)
        finally:
            if call is not None:
                if eager:
                    emit.mark(LAYER, END, call.label)
                layers.pop()

    gradient_function.__vramscope_original__ = original  # type: ignore[attr-defined]
    backprop._gradient_function = gradient_function
    pywrap.TFE_Py_RegisterGradientFunction(gradient_function)


def _forward_layer(ops: Any, inputs: Any, outputs: Any, scope: Any) -> Optional[layers.Call]:
    try:
        if ops is None:
            return layers.of_forward_op((*(inputs or ()), *(outputs or ())))     # None: the gradient does not need them
        return tf_graph.layer_of_scope(ops.get_default_graph(), scope) if scope else None
    except Exception:  # noqa: BLE001
        return None


def _name_gradients(tf: ModuleType, sources: Any, gradients: Any) -> None:
    """Which op makes the gradient of which variable: the op names alone do not say."""
    meanings = training.describe_variables()
    from . import keras_variables
    for source, gradient in zip(tf.nest.flatten(sources), tf.nest.flatten(gradients)):
        values = getattr(gradient, "values", gradient)     # IndexedSlices
        if gradient is None or not hasattr(values, "op"):
            continue
        meaning = meanings.get(id(keras_variables.raw(source)[0]))
        name = meaning.name if meaning else getattr(source, "name", "")
        emit.setting(f"gradient_op.{buffers.maker(values.op).name}", name)


def _born(tape: Any, line: Any) -> None:
    number, persistent = next(_numbers), bool(getattr(tape, "_persistent", False))
    where = str(line) if line is not None else ""
    kind = "persistent" if persistent else "tape"
    if _persistent_alive:
        _report_kept()
    emit.mark(TAPE, BEGIN, kind, number, where)
    if persistent:
        _persistent_alive[number] = where
    weakref.finalize(tape, _died, kind, number).atexit = False


def _died(kind: str, number: int) -> None:
    _persistent_alive.pop(number, None)
    emit.mark(TAPE, END, kind, number)


def _report_kept() -> None:
    """Another tape begins while a persistent one is alive: what that one recorded is still held."""
    for where in set(_persistent_alive.values()):
        _kept[where] = _kept.get(where, 0) + 1
        if _kept[where] in (2, 10, 100, 1000):
            file, _, line = where.rpartition(":")
            emit.fact("persistent_tape", key=where, file=file, line=int(line or 0), times=_kept[where])
