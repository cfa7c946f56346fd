"""PyTorch's own allocator statistics, for memory_info in a process that is not recorded."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, List, Optional

from .._devices import Device
from .._memory import UNKNOWN, Reader, Source


class _TorchSource(Source):
    name = "torch"

    def _cuda(self, device: Device) -> Optional[Any]:
        """torch.cuda if it has this device; the CPU allocator has no counters."""
        torch = sys.modules["torch"]
        cuda = getattr(torch, "cuda", None)
        if device.kind != "GPU" or cuda is None or not cuda.is_available() or device.index >= cuda.device_count():
            return None
        return cuda

    def devices(self) -> List[Device]:
        cuda = self._cuda(Device("GPU", 0))
        return [] if cuda is None else [Device("GPU", index) for index in range(cuda.device_count())]

    def reader(self, device: Device) -> Optional[Reader]:
        cuda = self._cuda(device)
        if cuda is None:
            return None
        stats, buffer = cuda.memory_stats_as_nested_dict, (ctypes.c_uint64 * 5)(0, 0, 0, 0, UNKNOWN)

        def read(index: int, _: object) -> int:
            counters = stats(index)
            if counters:        # empty: nothing allocated yet
                allocated, reserved = counters["allocated_bytes"]["all"], counters["reserved_bytes"]["all"]
                buffer[:4] = allocated["current"], allocated["peak"], 0, reserved["current"]
            return 0

        return Reader(read, device.index, None, buffer)

    def reset(self, device: Device) -> bool:
        cuda = self._cuda(device)
        if cuda is None:
            return False
        cuda.reset_peak_memory_stats(device.index)
        return True


SOURCE = _TorchSource()
