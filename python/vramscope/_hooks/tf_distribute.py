"""tf.distribute: what the replicas exchange belongs to no layer."""
from __future__ import annotations

from types import ModuleType
from typing import Any, Callable

from . import layers, training
from .wrapping import wrap


def install(tf: ModuleType) -> None:
    from tensorflow.python.distribute import cross_device_ops

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def reduce(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not training.is_tracing():
                return original(self, *args, **kwargs)
            with layers.inside(layers.ALL_REDUCE):
                return original(self, *args, **kwargs)
        return reduce

    for name in ("reduce", "batch_reduce"):
        wrap(cross_device_ops.CrossDeviceOps, name, make)
