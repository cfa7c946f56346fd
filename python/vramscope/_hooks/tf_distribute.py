"""tf.distribute: the rank in TF_CONFIG; what the replicas exchange does not belong to a layer."""
from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from . import emit, layers, ranks, training
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
    emit.at_first_event(lambda: _rank(tf))


def _rank(tf: ModuleType) -> None:
    """As TensorFlow numbers the workers: the chief is the first. Evaluators and parameter servers have no rank."""
    if "TF_CONFIG" not in os.environ or ranks.of_launcher() is not None:
        return
    from tensorflow.python.distribute import multi_worker_util
    task = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = task.cluster_spec()
    if task.task_type in ("chief", "worker"):
        emit.setting("launcher", "tf_config")
        emit.setting("rank", multi_worker_util.id_in_cluster(cluster, task.task_type, task.task_id))
        emit.setting("world_size", multi_worker_util.worker_count(cluster, task.task_type))
