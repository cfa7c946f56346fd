"""Training without a Keras optimizer: with those of TensorFlow 1, or by hand. When a trainable variable is written outside a
layer, the gradients computed before that are applied."""
from __future__ import annotations

from types import ModuleType
from typing import Any

from . import layers, tf_sessions, tf_variables, training
from .wrapping import wrap


def install(tf: ModuleType) -> None:
    from tensorflow.python.ops import resource_variable_ops
    from tensorflow.python.training import optimizer

    def applies(self: Any, *_: Any, **__: Any) -> None:
        training.note_optimizer(self)

    def applied(token: None, ok: bool, result: Any, self: Any, *_: Any, **__: Any) -> None:
        if ok and not training.is_tracing():
            training.optimizer_applied(self)
        elif ok:
            tf_sessions.made_optimizer(self)

    wrap(optimizer.Optimizer, "apply_gradients", applies, applied)

    def assigned(token: None, ok: bool, result: Any, variable: Any, *_: Any, **__: Any) -> None:
        if ok and not training.is_tracing() and layers.current() is None:
            tf_variables.assigned(variable)
        written(token, ok, result, variable)

    def written(token: None, ok: bool, result: Any, variable: Any, *_: Any, **__: Any) -> None:
        # Updates of a layer itself, such as moving averages.
        if ok and variable.trainable and layers.current() is None:
            if training.is_tracing():
                training.note_write(variable)
            else:
                training.variable_written(variable)

    for kind in (resource_variable_ops.BaseResourceVariable, resource_variable_ops.ResourceVariable):    # some releases store copies there
        wrap(kind, "assign", after=assigned)
        for name in ("assign_add", "assign_sub"):
            wrap(kind, name, after=written)
