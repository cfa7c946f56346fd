"""Samples the card through NVML, for a device as CUDA numbers it in this process. Nothing here touches a CUDA context."""
from __future__ import annotations

import ctypes
import os
from typing import Dict, NamedTuple, Optional


class Card(NamedTuple):
    name: str
    used: int
    free: int
    total: int
    others: Optional[int]     # bytes of other processes; None if the driver does not report them (containers)


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint),
                ("compute_instance", ctypes.c_uint)]


_UNKNOWN = (1 << 64) - 1
_library: Optional[ctypes.CDLL] = None
_failed = False
_handles: Dict[int, Optional[ctypes.c_void_p]] = {}


def _nvml() -> Optional[ctypes.CDLL]:
    global _library, _failed
    if _library is None and not _failed:
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
            if library.nvmlInit_v2() == 0:
                _library = library
        except (OSError, AttributeError):
            pass
        _failed = _library is None
    return _library


def _bus_id(ordinal: int) -> Optional[bytes]:
    """PCI bus id of the device that CUDA calls `ordinal` in this process, considering CUDA_VISIBLE_DEVICES and the device order."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, text = ctypes.c_int(), ctypes.create_string_buffer(32)
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), ordinal) or cuda.cuDeviceGetPCIBusId(text, 32, device):
        return None
    return text.value


def _handle(ordinal: int) -> Optional[ctypes.c_void_p]:
    if ordinal not in _handles:
        library, bus = _nvml(), _bus_id(ordinal)
        handle = ctypes.c_void_p()
        known = library is not None and bus is not None and library.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(handle)) == 0
        _handles[ordinal] = handle if known else None
    return _handles[ordinal]


def _others(library: ctypes.CDLL, handle: ctypes.c_void_p) -> Optional[int]:
    count = ctypes.c_uint(256)
    processes = (_Process * 256)()
    get = getattr(library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
    if get is None or get(handle, ctypes.byref(count), processes) != 0:
        return None
    mine = os.getpid()
    found = [p for p in processes[:count.value]]
    if any(p.bytes == _UNKNOWN for p in found) or (found and not any(p.pid == mine for p in found)):
        return None    # another pid namespace: this process cannot be identified among them
    return sum(p.bytes for p in found if p.pid != mine)


def card(ordinal: int) -> Optional[Card]:
    """One sample (tens of microseconds), or None without an NVIDIA driver."""
    library = _nvml()
    if library is None:
        return None
    handle = _handle(ordinal)
    if handle is None:
        return None
    memory, name = _Memory(), ctypes.create_string_buffer(96)
    if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) != 0:
        return None
    library.nvmlDeviceGetName(handle, name, 96)
    return Card(name.value.decode(errors="replace"), memory.used, memory.free, memory.total, _others(library, handle))
