"""tf.data: the tensors that a dataset is made of are inputs, and stay as long as the dataset; what `cache()` will hold."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Callable, List, Optional

from .. import _address
from . import emit, lines, training
from .wrapping import wrap

_WORTH_SAYING = 4 << 20


def install(tf: ModuleType) -> None:
    from tensorflow.python.data.ops import cache_op, from_tensor_slices_op, from_tensors_op

    def make_source(original: Callable[..., Any]) -> Callable[..., Any]:
        def init(self: Any, element: Any, *args: Any, **kwargs: Any) -> None:
            original(self, element, *args, **kwargs)
            if not training.is_tracing():
                line = lines.user_line(sys._getframe(1))
                emit.quietly(lambda: _source_made(tf, self._tensors, tf.nest.flatten(element), line))
        return init

    def make_cache(original: Callable[..., Any]) -> Callable[..., Any]:
        def init(self: Any, input_dataset: Any, filename: Any = "", *args: Any, **kwargs: Any) -> None:
            original(self, input_dataset, filename, *args, **kwargs)
            if isinstance(filename, str) and not filename and not training.is_tracing():
                line = lines.user_line(sys._getframe(1))
                emit.quietly(lambda: _cached(tf, input_dataset, line))
        return init

    for kind in (from_tensor_slices_op._TensorSliceDataset, from_tensors_op._TensorDataset):
        wrap(kind, "__init__", make_source)
    wrap(cache_op.CacheDataset, "__init__", make_cache)


def _source_made(tf: ModuleType, tensors: List[Any], given: List[Any], line: Optional[lines.Line]) -> None:
    # On a machine without a GPU the CPU is the device, and an array had to go there; a tensor was there already.
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
    if on_device >= _WORTH_SAYING and line is not None:
        emit.fact("dataset_on_device", key=str(line), bytes=on_device, device=device, file=line.file, line=line.line)


def _cached(tf: ModuleType, dataset: Any, line: Optional[lines.Line]) -> None:
    elements = int(dataset.cardinality())
    each = 0
    for spec in tf.nest.flatten(dataset.element_spec):
        count = spec.shape.num_elements()
        if count is None:                       # only the first axis, the batch, may be open
            rest = spec.shape[1:].num_elements() if spec.shape.rank else None
            count = 0 if rest is None else rest * _batch_size(dataset)
        each += count * spec.dtype.size
    if elements > 0 and elements * each >= _WORTH_SAYING and line is not None:
        emit.fact("cached_dataset", key=str(line), bytes=elements * each, elements=elements, file=line.file, line=line.line)


def _batch_size(dataset: Any) -> int:
    """Of the innermost batch(); 0 where it cannot be told."""
    while dataset is not None:
        size = getattr(dataset, "_batch_size", None)
        if size is not None:
            return int(size)
        dataset = getattr(dataset, "_input_dataset", None)
    return 0
