"""JAX's own allocator statistics: device.memory_stats()."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, List, Optional

from .._devices import Device
from .._memory import UNKNOWN, Reader, Source


class _JaxSource(Source):
    name = "jax"

    def _device(self, device: Device) -> Optional[Any]:
        """JAX's device if it counts; the CPU does not. Asks only a JAX that has started, because starting it takes the card."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        if device.kind != "GPU" or bridge is None or not getattr(bridge, "_backends", None):
            return None
        found = [one for one in sys.modules["jax"].local_devices() if one.platform in ("gpu", "cuda", "rocm") and one.local_hardware_id == device.index]
        return found[0] if found and found[0].memory_stats() else None

    def devices(self) -> List[Device]:
        return [Device("GPU", index) for index in range(64) if self._device(Device("GPU", index)) is not None]

    def reader(self, device: Device) -> Optional[Reader]:
        found = self._device(device)
        if found is None:
            return None
        buffer = (ctypes.c_uint64 * 5)(0, 0, 0, 0, UNKNOWN)

        def read(one: Any, _: object) -> int:
            counters = one.memory_stats()
            if not counters:
                return 1
            pool = counters.get("pool_bytes") or counters.get("bytes_reserved") or 0
            buffer[:4] = counters["bytes_in_use"], counters.get("peak_bytes_in_use", 0), counters.get("bytes_limit") or 0, pool
            return 0

        return Reader(read, found, None, buffer)

    def reset(self, device: Device) -> bool:
        return False        # JAX has no function for it


SOURCE = _JaxSource()
