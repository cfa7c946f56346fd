"""Training without an optimizer of Keras: by those of TensorFlow 1, or by hand. Where a trainable variable is written outside of a layer,
gradients that were taken before are applied."""
from __future__ import annotations

from types import ModuleType
from typing import Any, Callable

from . import layers, training
from .wrapping import wrap


def install(tf: ModuleType) -> None:
    from tensorflow.python.ops import resource_variable_ops
    from tensorflow.python.training import optimizer

    def make_apply(original: Callable[..., Any]) -> Callable[..., Any]:
        def apply_gradients(self: Any, *args: Any, **kwargs: Any) -> Any:
            training.note_optimizer(self)
            result = original(self, *args, **kwargs)
            if not training.is_tracing():
                training.optimizer_applied(self)
            return result
        return apply_gradients

    wrap(optimizer.Optimizer, "apply_gradients", make_apply)

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def assign(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            # A layer's own: moving averages and the like.
            if self.trainable and layers.current() is None:
                if training.is_tracing():
                    training.note_write(self)
                else:
                    training.variable_written(self)
            return result
        return assign

    for kind in (resource_variable_ops.BaseResourceVariable, resource_variable_ops.ResourceVariable):    # some releases put copies there
        for name in ("assign", "assign_add", "assign_sub"):
            wrap(kind, name, make)
