"""TensorFlow's own allocator statistics without TensorFlow's Python path: half a microsecond per read."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, List, Optional, Tuple

from .._devices import Device, parse_device
from .._memory import Reader, Source
from . import ops

_OK = 0


def _pointer(address: int) -> Any:
    """An address in a form that ctypes passes without conversion."""
    return ctypes.byref(ctypes.c_char.from_address(address))


class _TensorFlowSource(Source):
    name = "tensorflow"

    def _allocator(self, device: Device) -> Optional[int]:
        """Address of the device's allocator; None if TensorFlow has no such device."""
        return ops.allocator(str(device)) if self.has(device) else None

    def devices(self) -> List[Device]:
        tf = sys.modules["tensorflow"]
        if not hasattr(tf, "config"):      # partially imported
            return []
        return [parse_device(one.name) for kind in ("GPU", "CPU") for one in tf.config.list_logical_devices(kind)]

    def has(self, device: Device) -> bool:
        return device in self.devices()

    def reader(self, device: Device) -> Optional[Reader]:
        allocator = self._allocator(device)
        if allocator is None:
            return None
        # A separate function object and arguments that are ready to be passed, because conversions would cost more than the read.
        stats, buffer = ops.functions()["vramscope_tf_read_stats"], (ctypes.c_uint64 * 7)()
        reader = Reader(stats, _pointer(allocator), ctypes.byref(buffer), buffer)
        return reader if stats(reader.first, reader.second) == _OK else None

    def largest_free_source(self, device: Device) -> Tuple[int, int]:
        """A C function that returns the largest free block, and its argument; zeros if TensorFlow has no such device, or has it
        only in sessions."""
        tf = sys.modules["tensorflow"]
        allocator = self._allocator(device) if tf.compat.v1.executing_eagerly_outside_functions() else None
        if allocator is None:
            return 0, 0
        return ctypes.cast(ops.functions().vramscope_tf_largest_free, ctypes.c_void_p).value or 0, allocator

    def reset(self, device: Device) -> bool:
        allocator = self._allocator(device)
        return allocator is not None and ops.functions().vramscope_tf_clear_stats(allocator) == _OK


SOURCE = _TensorFlowSource()
