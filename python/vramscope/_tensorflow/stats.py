"""TensorFlow's own allocator statistics without TensorFlow's Python path: half a microsecond a read."""
from __future__ import annotations

import ctypes
import struct
import sys
from typing import Callable, Optional

from .._memory import Counters, Device, Source
from . import ops

_OK = 0


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

    def reader(self, device: Device) -> Optional[Callable[[], Counters]]:
        allocator = self._allocator(device)
        if allocator is None:
            return None
        buffer = (ctypes.c_uint64 * 7)()
        address, unpack, stats = ctypes.addressof(buffer), struct.Struct("<8x2Q8x3Q").unpack_from, ops.functions().vramscope_tf_read_stats
        if stats(allocator, address) != _OK:
            return None

        def read() -> Counters:
            stats(allocator, address)
            return unpack(buffer)          # type: ignore[return-value]

        return read

    def reset(self, device: Device) -> bool:
        allocator = self._allocator(device)
        return allocator is not None and ops.functions().vramscope_tf_clear_stats(allocator) == _OK


SOURCE = _TensorFlowSource()
