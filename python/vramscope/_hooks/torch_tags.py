"""Reports the contents of addresses: parameters, gradients, optimizer state, buffers."""
from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from .._schema import CATEGORIES
from . import emit, torch_frames


def place(tensor: Any) -> Tuple[int, int]:
    """Address and size of the block of a tensor; (0, 0) for one without memory."""
    tensor = getattr(tensor, "_local_tensor", tensor)       # a shard of a distributed tensor
    try:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        size = storage.nbytes()
        return (storage.data_ptr(), size) if size else (0, 0)
    except (RuntimeError, NotImplementedError, AttributeError):     # meta, fake and sparse tensors
        return 0, 0


def tag_tensors(tensors: Iterable[Tuple[str, str, Any]], category: str) -> None:
    """(name, layer, tensor)..."""
    for name, layer, tensor in tensors:
        address, size = place(tensor)
        if address:
            emit.tag(address, size, category, name, layer)


_INPUT_LAYER = "(input)"


# Same rule as in src/capture/torch/reporter.cpp: host tensors are recorded if there is no accelerator.
_HOST_RECORDED = not any(map(os.path.exists, ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")))


def _is_data(value: Any) -> bool:
    """A recorded tensor that was not computed and is not a parameter."""
    return (hasattr(value, "data_ptr") and getattr(value, "grad_fn", None) is None and type(value).__name__ != "Parameter"
            and (_HOST_RECORDED or value.device.type != "cpu"))


def tag_batch(inputs: Any) -> None:
    """The arguments of a model's first call: a batch that was created before the training loop and stays."""
    tag_tensors(((f"input {i}", _INPUT_LAYER, value) for i, value in enumerate(inputs) if _is_data(value)), "input")


def tag_dataset(dataset: Any) -> None:
    """A data set that is kept in memory as tensors."""
    for _ in range(4):      # Subset and others wrap one
        inner = getattr(dataset, "dataset", None)
        if inner is None:
            break
        dataset = inner
    found: List[Tuple[str, str, Any]] = []
    for name, value in list(getattr(dataset, "__dict__", {}).items())[:64]:
        parts = value[:64] if isinstance(value, (list, tuple)) else (value,)
        found += [(f"data set {name}", _INPUT_LAYER, part) for part in parts if _is_data(part)]
    tag_tensors(found, "input")


class Gradients:
    """The gradients of one optimizer, tagged in one call: a few dozen microseconds for a hundred parameters."""

    def __init__(self, parameters: Sequence[Any], names: Sequence[Tuple[str, str]]) -> None:
        self._parameters = [weakref.ref(parameter) for parameter in parameters]
        count = len(parameters)
        self._addresses = (ctypes.c_uint64 * count)()
        self._bytes = (ctypes.c_uint64 * count)()
        self._names = (ctypes.c_char_p * count)(*[name.encode("utf-8", "replace") for name, _ in names])
        self._layers = (ctypes.c_char_p * count)(*[layer.encode("utf-8", "replace") or None for _, layer in names])
        for i, parameter in enumerate(parameters):
            self._bytes[i] = place(parameter)[1]

    def tag(self) -> None:
        library = torch_frames.library_loaded
        if library is None:
            return
        addresses = []
        for reference in self._parameters:
            gradient = getattr(reference(), "grad", None)
            addresses.append(0 if gradient is None else _address(gradient))
        self._addresses[:] = addresses
        library.vramscope_tag_many(self._addresses, self._bytes, self._names, self._layers, ctypes.c_size_t(len(addresses)),
                                   CATEGORIES["gradient"])


def _address(gradient: Any) -> int:
    try:
        return gradient.data_ptr()
    except (RuntimeError, NotImplementedError, AttributeError):
        return place(gradient)[0]


def state_of(optimizer: Any, names: Dict[int, Tuple[str, str]]) -> List[Tuple[str, str, Any]]:
    """(name, layer, tensor) of everything that an optimizer keeps for its parameters."""
    found = []
    for parameter, values in optimizer.state.items():
        name, layer = names.get(id(parameter), ("", ""))
        if not isinstance(values, dict):
            continue
        for key, value in values.items():
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if hasattr(tensor, "data_ptr"):
                    found.append((f"{name}.{key}" if name else str(key), layer, tensor))
    return found
