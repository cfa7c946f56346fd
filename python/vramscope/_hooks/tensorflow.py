"""TensorFlow: source lines and layers of graph ops, tracing, gradients, tapes, variables, saving."""
from __future__ import annotations

import os
from types import ModuleType
from typing import Any, Callable

from .. import _memory
from . import emit, tf_data, tf_distribute, tf_functions, tf_graph, tf_tapes, tf_updates, tf_variables
from .wrapping import wrap


def install(tf: ModuleType) -> None:
    emit.at_first_event(lambda: _settings(tf))
    for part in (tf_graph, tf_functions, tf_tapes, tf_variables, tf_updates, tf_data, tf_distribute):
        part.install(tf)
    _watch_saving(tf)
    _watch_resets(tf)


def _settings(tf: ModuleType) -> None:
    emit.setting("tensorflow.version", tf.__version__)
    emit.setting("tensorflow.xla_auto_jit", tf.config.optimizer.get_jit() or "off")
    for name, value in _gpu_options(tf).items():
        emit.setting(f"tensorflow.{name}", value)


def _gpu_options(tf: ModuleType) -> dict:
    """How much of the card the pool may take. Asks only what does not start the devices."""
    options = {}
    growth = os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH")
    devices = tf.config.list_physical_devices("GPU")
    options["gpus"] = len(devices)
    for device in devices:
        index = device.name.rsplit(":", 1)[-1]
        try:
            growing = tf.config.experimental.get_memory_growth(device)
        except ValueError:
            growing = None
        options[f"memory_growth.{index}"] = growth == "true" if growth else bool(growing)
        for virtual in tf.config.get_logical_device_configuration(device) or ():
            if virtual.memory_limit:
                options[f"memory_limit_mib.{index}"] = virtual.memory_limit
    return options


def _watch_resets(tf: ModuleType) -> None:
    """Where the program resets TensorFlow's peak, `vramscope.memory_info` goes on to say the same."""
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def reset_memory_stats(device: Any) -> None:
            original(device)
            emit.quietly(lambda: _memory.reset_recorder(device))
        return reset_memory_stats

    wrap(tf.config.experimental, "reset_memory_stats", make)


def _watch_saving(tf: ModuleType) -> None:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def save(*args: Any, **kwargs: Any) -> Any:
            with emit.phase("save"):
                return original(*args, **kwargs)
        return save

    from tensorflow.python.checkpoint import checkpoint
    for name in ("save", "write"):
        wrap(checkpoint.Checkpoint, name, make)
