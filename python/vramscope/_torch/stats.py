"""PyTorch's own allocator statistics, for memory_info in a process that is not recorded."""
from __future__ import annotations

import sys
from typing import Any, Callable, Optional

from .._memory import Counters, Device, Source


class _TorchSource(Source):
    name = "torch"

    def _cuda(self, device: Device) -> Optional[Any]:
        """torch.cuda if it has this device; the CPU allocator keeps no counters."""
        torch = sys.modules["torch"]
        cuda = getattr(torch, "cuda", None)
        if device.kind != "GPU" or cuda is None or not cuda.is_available() or device.index >= cuda.device_count():
            return None
        return cuda

    def reader(self, device: Device) -> Optional[Callable[[], Counters]]:
        cuda = self._cuda(device)
        if cuda is None:
            return None
        index, stats = device.index, cuda.memory_stats_as_nested_dict

        def read() -> Counters:
            counters = stats(index)
            if not counters:        # nothing allocated yet
                return 0, 0, 0, 0, 0
            allocated, reserved = counters["allocated_bytes"]["all"], counters["reserved_bytes"]["all"]
            return allocated["current"], allocated["peak"], 0, reserved["current"], 0

        return read

    def reset(self, device: Device) -> bool:
        cuda = self._cuda(device)
        if cuda is None:
            return False
        cuda.reset_peak_memory_stats(device.index)
        return True


SOURCE = _TorchSource()
