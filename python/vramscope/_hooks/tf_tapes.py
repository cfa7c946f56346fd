"""GradientTape: forward and backward phases in eager mode, layers of backward ops, lifetimes of tapes."""
from __future__ import annotations

import itertools
import sys
import threading
import weakref
from types import ModuleType
from typing import Any, Dict, Optional

from .._schema import BEGIN, END, LAYER, PHASE, TAPE
from . import buffers, emit, layers, lines, tf_graph, tf_saved, training, walking
from .wrapping import wrap

_numbers = itertools.count(1)
_NO_LAYER = -1
_RECORDED = object()            # a pass that is a part of a forward pass
_kept: Dict[str, int] = {}


class _Persistent:
    """A persistent tape that is alive."""

    __slots__ = ("where", "steps", "differentiated")

    def __init__(self, where: str) -> None:
        self.where, self.steps, self.differentiated = where, training.steps_done(), False

    def is_of_an_earlier_step(self, where: str) -> bool:
        """Than the tape that starts now. In one step, a tape inside another one or beside it starts while that one is alive."""
        return training.steps_done() > self.steps or (self.differentiated and where == self.where)


_persistent: Dict[int, _Persistent] = {}        # by the id of the tape


class _Backward(threading.local):
    """Eager mode: the layer whose ops are being differentiated. Most ops are followed by one of the same layer, so its mark ends where
    another layer's begins, or with the pass."""
    passes = 0
    label = ""

    def enter(self, label: str) -> None:
        if label != self.label:
            self.leave()
            emit.mark(LAYER, BEGIN, label)
            self.label = label

    def leave(self) -> None:
        if self.label:
            emit.mark(LAYER, END, self.label)
            self.label = ""


_backward = _Backward()


def install(tf: ModuleType) -> None:
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import backprop
    from tensorflow.python.framework import ops

    _watch_gradient_functions(pywrap_tfe, backprop, ops)

    def _is_recorded(tape: Any, sources: Any) -> bool:
        """Whether a tape around this one records the pass, and it computes no gradients of variables: a slope, or a penalty on one. Then it is
        a part of the forward pass of that tape."""
        if tape._recording or pywrap_tfe.TFE_Py_TapeSetIsEmpty():
            return False
        return not any(hasattr(source, "assign") for source in tf.nest.flatten(sources))

    def made(token: None, ok: bool, result: Any, tape: Any, *_: Any, **__: Any) -> None:
        if ok and not training.is_tracing():
            _born(tape, lines.user_line(sys._getframe(1)))

    def gradient_begins(tape: Any, target: Any, sources: Any, *_: Any, **__: Any) -> Any:
        if training.is_tracing():
            training.note_gradients()
            graph = ops.get_default_graph()
            # Symbols of a graph; in eager mode nothing is kept.
            return sources, graph, tf_saved.begins(graph), walking.anchor(sys._getframe(1))
        training.gradients_taken()
        if id(tape) in _persistent:
            _persistent[id(tape)].differentiated = True
        if _is_recorded(tape, sources):
            return _RECORDED
        _backward.leave()
        _backward.passes += 1
        emit.mark(PHASE, BEGIN, "backward")
        return None

    def gradient_ended(traced: Any, ok: bool, gradients: Any, *_: Any, **__: Any) -> None:
        if traced is _RECORDED:
            return
        if traced is None:
            _backward.leave()
            _backward.passes -= 1
            emit.mark(PHASE, END, "backward")
            return
        sources, graph, before, anchor = traced
        walking.release(anchor)
        tf_saved.ended(graph, before)
        if ok:
            _name_gradients(tf, sources, gradients)

    wrap(backprop.GradientTape, "__init__", after=made)
    wrap(backprop.GradientTape, "gradient", gradient_begins, gradient_ended)


def _watch_gradient_functions(pywrap: Any, backprop: Any, ops: Any) -> None:
    """TensorFlow calls one Python function per op that it differentiates, with the name scope of the forward op."""

    def begins(op_name: Any, attr_tuple: Any, num_inputs: Any, inputs: Any, outputs: Any, out_grads: Any,
               skip_input_indices: Any, forward_pass_name_scope: Any) -> int:
        eager = not training.is_tracing()
        call = _forward_layer(None if eager else ops, inputs, outputs, forward_pass_name_scope)
        if call is None:
            return _NO_LAYER
        layers.push(call)
        if eager:
            _backward.enter(call.label)
            return 0
        return walking.anchor(sys._getframe(1))

    def ended(anchor: int, *_: Any, **__: Any) -> None:
        if anchor == _NO_LAYER:
            return
        if anchor:
            walking.release(anchor)
        elif not _backward.passes:
            _backward.leave()
        layers.pop()

    if wrap(backprop, "_gradient_function", begins, ended):
        pywrap.TFE_Py_RegisterGradientFunction(backprop._gradient_function)


def _forward_layer(ops: Any, inputs: Any, outputs: Any, scope: Any) -> Optional[layers.Call]:
    try:
        if ops is None:
            return layers.of_forward_op(inputs or (), outputs or ())            # None: the gradient does not need them
        return tf_graph.layer_of_scope(ops.get_default_graph(), scope) if scope else None
    except Exception:  # noqa: BLE001
        return None


def _name_gradients(tf: ModuleType, sources: Any, gradients: Any) -> None:
    """Which op computes the gradient of which variable; op names alone do not reveal it."""
    meanings = training.describe_variables()
    from . import keras_variables
    for source, gradient in zip(tf.nest.flatten(sources), tf.nest.flatten(gradients)):
        values = getattr(gradient, "values", gradient)     # IndexedSlices
        if gradient is None or not hasattr(values, "op"):
            continue
        meaning = meanings.get(id(keras_variables.raw(source)[0]))
        name = meaning.name if meaning else getattr(source, "name", "")
        emit.variable_op(buffers.maker(values.op).name, "gradient", "gradient", name)


def _born(tape: Any, line: Any) -> None:
    number, persistent = next(_numbers), bool(getattr(tape, "_persistent", False))
    where = str(line) if line is not None else ""
    kind = "persistent" if persistent else "tape"
    _report_kept(where)
    emit.mark(TAPE, BEGIN, kind, number, where)
    if persistent:
        _persistent[id(tape)] = _Persistent(where)
    weakref.finalize(tape, _died, kind, number, id(tape)).atexit = False


def _died(kind: str, number: int, tape: int) -> None:
    _persistent.pop(tape, None)
    emit.mark(TAPE, END, kind, number)


def _report_kept(starting_at: str) -> None:
    """Another tape starts while persistent ones of earlier steps are alive: what those recorded is still kept."""
    for where in {tape.where for tape in _persistent.values() if tape.is_of_an_earlier_step(starting_at)}:
        _kept[where] = _kept.get(where, 0) + 1
        if _kept[where] in (2, 10, 100, 1000):
            file, _, line = where.rpartition(":")
            emit.report("persistent_tape", file=file, line=line or 0, times=_kept[where])
