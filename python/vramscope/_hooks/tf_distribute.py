"""tf.distribute: what the replicas exchange does not belong to a layer."""
from __future__ import annotations

from types import ModuleType
from typing import Any

from . import layers, training
from .wrapping import wrap


def install(tf: ModuleType) -> None:
    from tensorflow.python.distribute import cross_device_ops

    def begins(*_: Any, **__: Any) -> bool:
        tracing = training.is_tracing()
        if tracing:
            layers.push(layers.Call("", None, 0, layers.ALL_REDUCE))
        return tracing

    def ended(pushed: bool, *_: Any, **__: Any) -> None:
        if pushed:
            layers.pop()

    for name in ("reduce", "batch_reduce"):
        wrap(cross_device_ops.CrossDeviceOps, name, begins, ended)
