"""TensorFlow: source lines and layers of graph ops, tracing, gradients, tapes, variables, saving."""
from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from ... import _memory
from .. import (emit, host_python, lines, tf_batches, tf_constants, tf_data, tf_distribute, tf_functions, tf_graph, tf_pipeline, tf_sessions, tf_tapes,
                tf_updates, tf_variables)
from ..wrapping import wrap, wrap_phase


def install(tf: ModuleType) -> None:
    emit.at_first_event(lambda: _settings(tf))
    for part in (tf_graph, tf_functions, tf_sessions, tf_tapes, tf_variables, tf_updates, tf_constants, tf_data, tf_pipeline,
                 tf_batches, tf_distribute):
        part.install(tf)
    _watch_saving(tf)
    _watch_resets(tf)
    host_python.start()
    emit.watching(b"tensorflow")


def _settings(tf: ModuleType) -> None:
    emit.setting("tensorflow.version", tf.__version__)
    lines.report_folders()
    emit.setting("tensorflow.xla_auto_jit", tf.config.optimizer.get_jit() or "off")
    for name, value in _gpu_options(tf).items():
        emit.setting(f"tensorflow.{name}", value)


def _gpu_options(tf: ModuleType) -> dict:
    """How much of the card the pool may take. Queries only what does not initialize the devices."""
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
    """When the program resets TensorFlow's peak, `vramscope.memory_info` resets its own, so that both stay equal."""
    def was_reset(token: None, ok: bool, result: None, device: Any) -> None:
        if ok:
            _memory.reset_recorder(device)

    wrap(tf.config.experimental, "reset_memory_stats", after=was_reset)


def _watch_saving(tf: ModuleType) -> None:
    from tensorflow.python.checkpoint import checkpoint
    for name in ("save", "write"):
        wrap_phase(checkpoint.Checkpoint, name, "save")
