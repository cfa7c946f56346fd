"""How many samples a batch has, where a loop of one's own takes batches from a dataset."""
from __future__ import annotations

from types import ModuleType
from typing import Any

from . import tf_pipeline, training
from .wrapping import wrap

_BATCHED = "_vramscope_batched"     # on an iterator


def install(tf: ModuleType) -> None:
    from tensorflow.python.data.ops import iterator_ops

    def taken(token: None, ok: bool, element: Any, iterator: Any, *_: Any, **__: Any) -> None:
        if not ok or training.inside_loop():
            return
        batched = iterator.__dict__.get(_BATCHED)
        if batched is None:
            batched = tf_pipeline.batch_size(iterator._dataset) > 0
            setattr(iterator, _BATCHED, batched)
        if batched:
            samples = _samples(element)
            if samples > 0:
                training.batch_seen(samples)

    wrap(iterator_ops.OwnedIterator, "__next__", after=taken)


def _samples(element: Any) -> int:
    """The length of the first tensor of a batch; 0 if it has none."""
    while isinstance(element, (tuple, list, dict)) and element:
        element = next(iter(element.values())) if isinstance(element, dict) else element[0]
    shape = getattr(element, "shape", None)
    return int(shape[0] or 0) if shape is not None and shape.rank else 0
