"""TensorFlow's own allocator statistics without TensorFlow's Python path: half a microsecond a read."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, Optional, Tuple

from .._memory import Device, Reader, Source
from . import ops

_OK = 0


def _pointer(address: int) -> Any:
    """An address as ctypes passes it without looking at it again."""
    return ctypes.byref(ctypes.c_char.from_address(address))


class _TensorFlowSource(Source):
    name = "tensorflow"

    def _allocator(self, device: Device) -> Optional[int]:
        """Address of the device's allocator; None if TensorFlow has no such device."""
        return ops.allocator(str(device)) if self.has(device) else None

    def has(self, device: Device) -> bool:
        tf = sys.modules["tensorflow"]
        if not hasattr(tf, "config"):      # half imported
            return False
        return any(d.name.endswith(f":{device}") for d in tf.config.list_logical_devices(device.kind))

    def reader(self, device: Device) -> Optional[Reader]:
        allocator = self._allocator(device)
        if allocator is None:
            return None
        # A function object of its own and arguments that are ready to be passed: conversions would cost more than the read.
        stats, buffer = ops.functions()["vramscope_tf_read_stats"], (ctypes.c_uint64 * 7)()
        reader = Reader(stats, _pointer(allocator), ctypes.byref(buffer), buffer)
        return reader if stats(reader.first, reader.second) == _OK else None

    def who_tells_largest_free(self, device: Device) -> Tuple[int, int]:
        """A C function that can be asked for the largest free block, and its argument; zeroes where TensorFlow has no such device, or only
        in sessions."""
        tf = sys.modules["tensorflow"]
        allocator = self._allocator(device) if tf.compat.v1.executing_eagerly_outside_functions() else None
        if allocator is None:
            return 0, 0
        return ctypes.cast(ops.functions().vramscope_tf_largest_free, ctypes.c_void_p).value or 0, allocator

    def reset(self, device: Device) -> bool:
        allocator = self._allocator(device)
        return allocator is not None and ops.functions().vramscope_tf_clear_stats(allocator) == _OK


SOURCE = _TensorFlowSource()
