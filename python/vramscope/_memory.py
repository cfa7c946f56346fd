"""`vramscope.memory_info`: one device's memory as numbers, cheap enough for every step of a training loop.

The counters come from whoever keeps them: the recorder while it records, else the framework's own allocator. Nothing waits
for the device. What the card and the host say is sampled only on request; the age of the sample is part of the answer.
"""
from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _nvml, _recorder


class MemoryInfo(NamedTuple):
    """All in bytes. None: nobody tells."""

    device: str
    current: int                        # handed out to tensors
    peak: int                           # highest `current` since the start or the last reset_peak()
    limit: Optional[int]                # what the allocator may take
    pool: Optional[int]                 # what the allocator has taken
    cached: Optional[int]               # pool - current: held, but in no tensor
    largest_free_block: Optional[int]
    source: str                         # who counted: "recorder", "tensorflow", "torch"
    device_name: Optional[str]
    device_used: Optional[int]          # the card, all processes
    device_free: Optional[int]
    device_total: Optional[int]
    other_processes: Optional[int]
    host_rss: Optional[int]             # resident memory of this process
    sample_age: Optional[float]         # seconds since the six fields above were read; fresh=True reads them now


HOST_POOL_VARIABLE = "TF_CPU_ALLOCATOR_USE_BFC"      # TensorFlow then keeps a pool on the host, of the same kind as on a GPU

UNKNOWN = (1 << 64) - 1


class Reader(NamedTuple):
    """`call(first, second)` writes five numbers into `buffer`: current, peak, limit, pool (0: not known), largest free block (UNKNOWN).
    Anything but 0: it counts no more, ask the others. In parts, because a function around them would cost a tenth of a read."""

    call: Callable[[Any, Any], int]
    first: Any
    second: Any
    buffer: "ctypes.Array[ctypes.c_uint64]"


class Source:
    """Somebody who keeps counters."""

    name = ""

    def reader(self, device: "Device") -> Optional[Reader]:
        """None when it does not know the device."""
        raise NotImplementedError

    def reset(self, device: "Device") -> bool:
        """Peak = current; False if that cannot be done."""
        raise NotImplementedError

    def has(self, device: "Device") -> bool:
        """Whether there is such a device at all."""
        return device.index == 0


class Device(NamedTuple):
    kind: str       # "GPU" or "CPU"
    index: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


_NAME = re.compile(r"^(?:/job:\w+/replica:\d+/task:\d+/)?/?(?:device:)?(gpu|cuda|cpu)(?::(\d+))?$", re.IGNORECASE)


def parse_device(name: object) -> Device:
    """'GPU:0', 'cuda:1', '/job:localhost/replica:0/task:0/device:GPU:0', 'CPU', what prints as one of these; ValueError for anything else."""
    match = _NAME.match(str(name))
    if match is None:
        raise ValueError(f"unknown device '{name}': write for example 'GPU:0' or 'CPU:0'")
    return Device("CPU" if match.group(1).lower() == "cpu" else "GPU", int(match.group(2) or 0))


class _RecorderSource(Source):
    """The recorder's running totals. A pool keeps its place in the table as long as the process lives."""

    name = "recorder"
    _TENSOR_LEVEL, _DEVICE_MEMORY, _HOST_MEMORY = 2, 0, 3

    def _place(self, recorder: _recorder.Recorder, device: Device) -> Optional[int]:
        if not _exists(device):
            return None
        ordinal, memory = (device.index, self._DEVICE_MEMORY) if device.kind == "GPU" else (-1, self._HOST_MEMORY)
        best = None
        for place, pool in enumerate(recorder.pool_list()):
            if (pool.level, pool.device, pool.memory) == (self._TENSOR_LEVEL, ordinal, memory):
                # Several host pools: the one that TensorFlow's CPU device computes in.
                if best is None or pool.name == b"bfc_cpu_allocator_for_gpu":
                    best = place
        return best

    def reader(self, device: Device) -> Optional[Reader]:
        recorder = _recorder.active()
        place = None if recorder is None else self._place(recorder, device)
        if recorder is None or place is None:
            return None
        largest_free = _who_tells_largest_free(device) if recorder.pool_list()[place].framework == b"tensorflow" else (0, 0)
        buffer = (ctypes.c_uint64 * 7)(0, 0, 0, 0, UNKNOWN, *largest_free)
        return Reader(recorder.pool_totals, place, ctypes.byref(buffer), buffer)  # type: ignore[attr-defined]

    def reset(self, device: Device) -> bool:
        recorder = _recorder.active()
        place = None if recorder is None else self._place(recorder, device)
        if recorder is None or place is None:
            return False
        return recorder.reset_peak(recorder.pool_list()[place].name) == 0  # type: ignore[attr-defined]


def _tensorflow_source() -> Optional[Source]:
    if "tensorflow" not in sys.modules:
        return None
    from ._tensorflow import stats
    return stats.SOURCE


def _who_tells_largest_free(device: Device) -> Tuple[int, int]:
    """TensorFlow's pools know their largest free block; the recorder does not follow it. A C function and its argument, or zeroes."""
    try:
        from ._tensorflow import stats
        return stats.SOURCE.who_tells_largest_free(device)
    except Exception:  # noqa: BLE001 (the other numbers do not depend on it)
        return 0, 0


def _exists(device: Device) -> bool:
    """A second CPU is one of TensorFlow's logical devices, which all share one allocator: the pools do not tell."""
    if device.kind != "CPU" or device.index == 0:
        return True
    source = _tensorflow_source()
    return source is not None and source.has(device)


def _torch_source() -> Optional[Source]:
    if "torch" not in sys.modules:
        return None
    try:
        from ._torch import stats
    except ImportError:
        return None
    return stats.SOURCE


_recorder_source = _RecorderSource()
_SOURCES: List[Callable[[], Optional[Source]]] = [lambda: _recorder_source, _tensorflow_source, _torch_source]
# When it was taken; the card's name, used, free, total, other processes; the host's resident set.
_Sample = Tuple[float, Optional[str], Optional[int], Optional[int], Optional[int], Optional[int], Optional[int]]
_samples: Dict[Device, List[_Sample]] = {}          # the last one of each device


def host_rss() -> Optional[int]:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, IndexError, ValueError):
        return None


def _sample(device: Device) -> _Sample:
    card = _nvml.card(device.index) if device.kind == "GPU" else None
    fields = (card.name, card.used, card.free, card.total, card.others) if card else (None,) * 5
    return (time.monotonic(), *fields, host_rss())


def _find_reader(device: Device) -> Tuple[Reader, str]:
    for get in _SOURCES:
        source = get()
        reader = None if source is None else source.reader(device)
        if source is not None and reader is not None:
            return reader, source.name
    raise ValueError(_why_not(device))


_new, _now, _unpack = tuple.__new__, time.monotonic, struct.Struct("<5Q").unpack_from
_Bound = Tuple[Callable[[Any, Any], int], Any, Any, Any, str, str, List[_Sample]]
# By the name that the caller uses, so that a call in a training loop is one look-up, one C call and one tuple.
_bound: Dict[object, _Bound] = {}


def _bind(device: object) -> _Bound:
    where = parse_device(device)
    reader, source = _find_reader(where)
    if where not in _samples:
        _samples[where] = [_sample(where)]
    bound = (*reader, source, str(device), _samples[where])
    if isinstance(device, str):
        _bound[device] = bound
    return bound


def forget_readers() -> None:
    """Recording began or ended, or this is another process now: somebody else keeps the counters."""
    _bound.clear()


os.register_at_fork(after_in_child=forget_readers)


def _why_not(device: Device) -> str:
    if not any(name in sys.modules for name in ("tensorflow", "torch")):
        return f"nobody keeps counters for '{device}': import TensorFlow or PyTorch first, or start recording"
    if device.kind == "CPU" and _exists(device):
        return (f"Allocator stats not available for device '{device}': set {HOST_POOL_VARIABLE}=1 before TensorFlow is "
                "imported, or record with `vramscope run`")
    return f"No matching devices found for '{device}'"


def memory_info(device: str = "GPU:0", fresh: bool = False) -> MemoryInfo:
    """Current, peak, limit, pool and so on of one device, and the last sample of the card and the host.

    Raises ValueError for an unknown device, or when nobody keeps counters for it.
    """
    try:
        call, first, second, buffer, source, name, sampled = _bound[device]
    except (KeyError, TypeError):
        call, first, second, buffer, source, name, sampled = _bind(device)
    if call(first, second):
        forget_readers()
        return memory_info(device, fresh)
    if fresh:
        sampled[0] = _sample(parse_device(device))
    current, peak, limit, pool, largest_free = _unpack(buffer)
    when, card, used, free, total, others, rss = sampled[0]
    return _new(MemoryInfo, (
        name, current, peak, limit or None, pool or None, pool - current if pool else None, None if largest_free == UNKNOWN else largest_free,
        source, card, used, free, total, others, rss, _now() - when))


def reset_peak(device: str = "GPU:0") -> None:
    """`peak` starts again from `current`, for everybody who counts: the recorder and the framework go on to agree.

    Raises ValueError for a device without statistics.
    """
    where = parse_device(device)
    sources = [source for source in (get() for get in _SOURCES) if source is not None and source.reader(where) is not None]
    if not sources:
        raise ValueError(_why_not(where))
    if not all([source.reset(where) for source in sources]):
        raise ValueError(f"Cannot reset memory stats for device '{device}'")


def reset_recorder(device: str) -> None:
    """The framework's peak was reset: the recorder's follows. Quiet where nothing is recorded."""
    if _recorder.active() is not None:
        _recorder_source.reset(parse_device(device))
