"""tf.data: the source tensors of a dataset are inputs and live as long as the dataset; also the size of what `cache()` will
hold."""
from __future__ import annotations

import sys
import weakref
from types import ModuleType
from typing import Any, List, Optional

from .. import _address
from . import emit, lines, tf_pipeline, training
from .wrapping import wrap

_WORTH_SAYING = 4 << 20
_MOST_DATASETS = 1000                   # that one dataset is made of
_caches: "weakref.WeakKeyDictionary[Any, lines.Line]" = weakref.WeakKeyDictionary()       # not read yet, and where they were made


def install(tf: ModuleType) -> None:
    from tensorflow.python.data.ops import cache_op, from_tensor_slices_op, from_tensors_op

    def source_made(token: None, ok: bool, result: Any, dataset: Any, element: Any, *_: Any, **__: Any) -> None:
        if ok and not training.is_tracing():
            _source_made(tf, dataset._tensors, tf.nest.flatten(element), lines.user_line(sys._getframe(1)))

    def cache_made(token: None, ok: bool, result: Any, dataset: Any, input_dataset: Any, filename: Any = "", *_: Any, **__: Any) -> None:
        line = lines.user_line(sys._getframe(1))
        if ok and isinstance(filename, str) and not filename and line is not None and not training.is_tracing():
            _caches[dataset] = line

    def iterated(dataset: Any) -> None:
        if len(_caches):
            _read(tf, dataset)

    for kind in (from_tensor_slices_op._TensorSliceDataset, from_tensors_op._TensorDataset):
        wrap(kind, "__init__", after=source_made)
    wrap(cache_op.CacheDataset, "__init__", after=cache_made)
    tf_pipeline.when_iterated.append(iterated)


def _source_made(tf: ModuleType, tensors: List[Any], given: List[Any], line: Optional[lines.Line]) -> None:
    # On a machine without a GPU, the CPU is the device. An array had to be copied there; a tensor was already there.
    gpus = bool(tf.config.list_physical_devices("GPU"))
    already = {id(one) for one in given if hasattr(one, "_numpy")}
    on_device, device = 0, ""
    for tensor in tensors:
        try:
            address, size = _address.of(tensor)
        except TypeError:
            continue
        emit.tag(address, size, "input", "source of a dataset", None)
        if ("GPU" in tensor.device) if gpus else id(tensor) in already:
            on_device, device = on_device + size, tensor.device.rpartition("device:")[2]
    if on_device >= _WORTH_SAYING and line is not None and not training.passes.running:
        emit.report("dataset_on_device", bytes=on_device, device=device, file=line.file, line=line.line)


def _read(tf: ModuleType, dataset: Any) -> None:
    """A cache holds nothing before somebody iterates over it."""
    waiting, seen = [dataset], 0
    while waiting and seen < _MOST_DATASETS:
        one, seen = waiting.pop(), seen + 1
        line = _caches.pop(one, None)
        if line is not None:
            _cached(tf, one._input_dataset, line)
        waiting += one._inputs()


def _cached(tf: ModuleType, dataset: Any, line: Optional[lines.Line]) -> None:
    elements, each = int(dataset.cardinality()), tf_pipeline.element_bytes(tf, dataset)
    if elements > 0 and elements * each >= _WORTH_SAYING and line is not None:
        emit.report("cached_dataset", bytes=elements * each, elements=elements, file=line.file, line=line.line)
