"""Late attach: models, optimizers and variables that were created before the hooks were installed."""
from __future__ import annotations

import gc
import sys
from typing import Any, Tuple

from .. import emit, keras_variables, tf_variables, training


def _types(name: str, *paths: str) -> Tuple[type, ...]:
    """Classes that are already loaded, by module and name."""
    found = []
    for path in paths:
        module = sys.modules.get(path)
        kind = getattr(module, name, None)
        if isinstance(kind, type):
            found.append(kind)
    return tuple(found)


def what_exists() -> None:
    emit.quietly(_all)
    training.tag_variables()


def _all() -> None:
    variable = _types("BaseResourceVariable", "tensorflow.python.ops.resource_variable_ops")
    layer = _types("Layer", "keras.src.layers.layer", "keras.src.engine.base_layer", "tf_keras.src.engine.base_layer")
    model = _types("Model", "keras.src.models.model", "keras.src.engine.training", "tf_keras.src.engine.training")
    optimizer = _types("BaseOptimizer", "keras.src.optimizers.base_optimizer") or _types(
        "_BaseOptimizer", "keras.src.optimizers.optimizer", "tf_keras.src.optimizers.optimizer")
    metric = _types("Metric", "keras.src.metrics.metric", "keras.src.metrics.base_metric", "tf_keras.src.metrics.base_metric")
    known = tf_variables.known()
    tracked = keras_variables.known()
    for thing in gc.get_objects():
        kind: Any = type(thing)
        if issubclass(kind, variable):
            if id(thing) not in known:
                tf_variables.remember(thing)
        elif issubclass(kind, metric):          # also a layer in Keras 2
            if id(thing) not in tracked:
                keras_variables.track_metric(thing)
        elif issubclass(kind, layer):
            if id(thing) not in tracked:
                keras_variables.track(thing, issubclass(kind, model))
        elif issubclass(kind, optimizer) and id(thing) not in tracked:
            keras_variables.track_optimizer(thing)
