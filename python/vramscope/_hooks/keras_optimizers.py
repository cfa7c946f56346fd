"""Optimizers: their phase in eager mode, the end of a step in a custom loop, and whose variable an update op belongs to."""
from __future__ import annotations

from types import ModuleType
from typing import Any, Callable

from .._recorder import BEGIN, END, LAYER
from . import emit, keras_variables, layers, training
from .wrapping import wrap


def install(module: ModuleType) -> None:
    optimizer_type = getattr(module, "BaseOptimizer", None) or module._BaseOptimizer

    def make_init(original: Callable[..., Any]) -> Callable[..., Any]:
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            keras_variables.track_optimizer(self)
            emit.quietly(lambda: _watch_updates(type(self)))
        return init

    def make_apply(original: Callable[..., Any]) -> Callable[..., Any]:
        def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
            if training.is_tracing():
                training.note_optimizer(self)
                emit.setting("keras.optimizer.scope", self.name)
                with layers.inside(layers.OPTIMIZER):
                    return original(self, *args, **kwargs)
            training.number_of(self)
            with emit.phase("optimizer"):
                result = original(self, *args, **kwargs)
            training.optimizer_applied(self)
            return result
        return apply

    wrap(optimizer_type, "__init__", make_init)
    # Keras 3: apply_gradients calls apply; Keras 2 has only the former.
    if not wrap(optimizer_type, "apply", make_apply):
        for kind in (optimizer_type, getattr(module, "Optimizer", optimizer_type)):
            wrap(kind, "apply_gradients", make_apply)


def _watch_updates(optimizer_type: type) -> None:
    """While one variable is updated, its layer is the current one. `update_step` is each optimizer's own method."""
    for kind in optimizer_type.__mro__:
        if "update_step" not in vars(kind):
            continue

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def update_step(self: Any, gradient: Any, variable: Any, *args: Any, **kwargs: Any) -> Any:
                meaning = training.meaning_of(keras_variables.raw(variable)[0])
                if meaning is None or not meaning.layer:
                    return original(self, gradient, variable, *args, **kwargs)
                layer = meaning.layer
                eager = not training.is_tracing()
                layers.push(layers.Call(layer, meaning.built, None))
                if eager:
                    emit.mark(LAYER, BEGIN, layer)
                try:
                    return original(self, gradient, variable, *args, **kwargs)
                finally:
                    if eager:
                        emit.mark(LAYER, END, layer)
                    layers.pop()
            return update_step

        wrap(kind, "update_step", make)
