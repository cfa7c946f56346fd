"""Optimizers: their phase in eager mode, the end of a step in a custom loop, and the variable that an update op belongs to."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Optional, Tuple

from .._schema import BEGIN, END, LAYER, PHASE
from . import emit, keras_variables, layers, training, walking
from .wrapping import wrap


def install(module: ModuleType) -> None:
    optimizer_type = getattr(module, "BaseOptimizer", None) or module._BaseOptimizer

    def made(token: None, ok: bool, result: None, optimizer: Any, *_: Any, **__: Any) -> None:
        if ok:
            keras_variables.track_optimizer(optimizer)
            _watch_updates(type(optimizer))

    def applies(optimizer: Any, *_: Any, **__: Any) -> Tuple[bool, int]:
        tracing, anchor = training.is_tracing(), 0
        if tracing:
            anchor = walking.anchor(sys._getframe(1))
            training.note_optimizer(optimizer)
            emit.setting("keras.optimizer.scope", optimizer.name)
            layers.push(layers.Call("", None, 0, layers.OPTIMIZER))
        else:
            training.number_of(optimizer)
            emit.mark(PHASE, BEGIN, "optimizer")
        return tracing, anchor

    def applied(token: Tuple[bool, int], ok: bool, result: Any, optimizer: Any, *_: Any, **__: Any) -> None:
        traced, anchor = token
        if traced:
            walking.release(anchor)
            layers.pop()
            return
        emit.mark(PHASE, END, "optimizer")
        if ok:
            training.optimizer_applied(optimizer)

    wrap(optimizer_type, "__init__", after=made)
    # In Keras 3, apply_gradients calls apply; Keras 2 has only the former.
    if "apply" in vars(optimizer_type):
        wrap(optimizer_type, "apply", applies, applied)
    else:
        for kind in (optimizer_type, getattr(module, "Optimizer", optimizer_type)):
            wrap(kind, "apply_gradients", applies, applied)


def _watch_updates(optimizer_type: type) -> None:
    """While a variable is updated, its layer is the current one. `update_step` is the method that each optimizer implements."""
    def begins(optimizer: Any, gradient: Any, variable: Any, *_: Any, **__: Any) -> Optional[Tuple[str, bool, int]]:
        meaning = training.meaning_of(keras_variables.raw(variable)[0])
        if meaning is None or not meaning.layer:
            return None
        eager = not training.is_tracing()
        layers.push(layers.Call(meaning.layer, meaning.built, 0))
        if eager:
            emit.mark(LAYER, BEGIN, meaning.layer)
        return meaning.layer, eager, 0 if eager else walking.anchor(sys._getframe(1))

    def ended(token: Optional[Tuple[str, bool, int]], *_: Any, **__: Any) -> None:
        if token is not None:
            layer, eager, anchor = token
            if eager:
                emit.mark(LAYER, END, layer)
            walking.release(anchor)
            layers.pop()

    for kind in optimizer_type.__mro__:
        if "update_step" in vars(kind):
            wrap(kind, "update_step", begins, ended)
