"""`vramscope.memory_info`: the memory of a device, or of all, as numbers, cheap enough for every step of a training loop.

The counters come from the recorder while it records, else from the framework's own allocator. Nothing waits for the
device. Card and host memory are sampled only on request; the age of the sample is part of the result.
"""
from __future__ import annotations

import ctypes
import os
import struct
import sys
import time
from importlib import import_module
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union, overload

from . import _nvml, _recorder, _units
from ._devices import Device, name_of, not_found, parse_device
from ._hooks import importing
from ._table import text_table


class MemoryInfo(NamedTuple):
    """All sizes in bytes. None: unknown."""

    device: str
    current: int                        # handed out to tensors
    peak: int                           # highest `current` since the start or the last reset_peak()
    limit: Optional[int]                # what the allocator may take
    pool: Optional[int]                 # what the allocator has taken
    cached: Optional[int]               # pool - current: held, but in no tensor
    largest_free_block: Optional[int]
    source: str                         # where the counters come from: "recorder", "tensorflow", "torch"
    device_name: Optional[str]
    device_used: Optional[int]          # the card, all processes
    device_free: Optional[int]
    device_total: Optional[int]
    other_processes: Optional[int]
    host_rss: Optional[int]             # resident memory of this process
    sample_age: Optional[float]         # seconds since the six fields above were read; fresh=True reads them now


class MemoryInfos(List[MemoryInfo]):
    """Of several devices; prints as a table."""

    def __str__(self) -> str:
        return text_table(["device", "current", "peak", "limit", "pool"],
                          [[one.device, *(_units.size(value) for value in (one.current, one.peak, one.limit, one.pool))] for one in self])


UNKNOWN = (1 << 64) - 1


class Reader(NamedTuple):
    """`call(first, second)` writes five numbers into `buffer`: current, peak, limit, pool (0: unknown), largest free block (UNKNOWN).
    A result other than 0 means that this source no longer counts. Kept as parts, because a function around them would add 10 % to each read."""

    call: Callable[[Any, Any], int]
    first: Any
    second: Any
    buffer: "ctypes.Array[ctypes.c_uint64]"


class Source:
    """A source of counters."""

    name = ""

    def devices(self) -> List[Device]:
        """The devices that it may have counters for."""
        return []

    def reader(self, device: Device) -> Optional[Reader]:
        """None if the source does not know the device."""
        raise NotImplementedError

    def reset(self, device: Device) -> bool:
        """Sets the peak to the current value; False if that is not possible."""
        raise NotImplementedError

    def has(self, device: Device) -> bool:
        """Whether the device exists."""
        return device.index == 0

    def largest_free_source(self, device: Device) -> Tuple[int, int]:
        """A C function that returns the largest free block, and its argument; zeros if there is none."""
        return 0, 0


class _RecorderSource(Source):
    """The recorder's running totals. A pool keeps its place in the table as long as the process lives."""

    name = "recorder"
    _TENSOR_LEVEL, _DEVICE_MEMORY, _HOST_MEMORY = 2, 0, 3

    def devices(self) -> List[Device]:
        recorder = _recorder.active()
        pools = [] if recorder is None else [pool for pool in recorder.pool_list() if pool.level == self._TENSOR_LEVEL]
        return [Device("GPU", pool.device) if pool.memory == self._DEVICE_MEMORY else Device("CPU", 0) for pool in pools
                if pool.memory in (self._DEVICE_MEMORY, self._HOST_MEMORY)]

    def _place(self, recorder: _recorder.Recorder, device: Device) -> Optional[int]:
        if not _exists(device):
            return None
        ordinal, memory = (device.index, self._DEVICE_MEMORY) if device.kind == "GPU" else (-1, self._HOST_MEMORY)
        best = None
        for place, pool in enumerate(recorder.pool_list()):
            if (pool.level, pool.device, pool.memory) == (self._TENSOR_LEVEL, ordinal, memory):
                # Of several host pools, use the one that the framework's CPU device computes in.
                if best is None or pool.name in _MAIN_HOST_POOLS:
                    best = place
        return best

    def reader(self, device: Device) -> Optional[Reader]:
        recorder = _recorder.active()
        place = None if recorder is None else self._place(recorder, device)
        if recorder is None or place is None:
            return None
        largest_free = _largest_free_source(recorder.pool_list()[place].framework.decode(), device)
        buffer = (ctypes.c_uint64 * 7)(0, 0, 0, 0, UNKNOWN, *largest_free)
        return Reader(recorder.pool_totals, place, ctypes.byref(buffer), buffer)  # type: ignore[attr-defined]

    def reset(self, device: Device) -> bool:
        recorder = _recorder.active()
        place = None if recorder is None else self._place(recorder, device)
        if recorder is None or place is None:
            return False
        return recorder.reset_peak(recorder.pool_list()[place].name) == 0  # type: ignore[attr-defined]


_COUNTING = [framework for framework in importing.FRAMEWORKS if "COUNTERS" in framework]
_MAIN_HOST_POOLS = {framework["MAIN_HOST_POOL"] for framework in _COUNTING if "MAIN_HOST_POOL" in framework}


def _is_imported(framework: Dict[str, Any]) -> bool:
    return framework["MODULE"] in sys.modules


def _framework_sources(word: Optional[str] = None) -> List[Source]:
    """Of all frameworks that are imported, or of the one with this name."""
    found = []
    for framework in _COUNTING:
        if word in (None, framework["WORD"]) and _is_imported(framework):
            try:
                found.append(import_module(framework["COUNTERS"]).SOURCE)
            except ImportError:         # the framework is still being imported
                pass
    return found


def _largest_free_source(word: str, device: Device) -> Tuple[int, int]:
    """A framework may know the largest free block of its pool, the recorder does not. Returns a C function and its argument, or zeros."""
    try:
        for source in _framework_sources(word):
            return source.largest_free_source(device)
    except Exception:  # noqa: BLE001 (the other numbers do not depend on it)
        pass
    return 0, 0


def _exists(device: Device) -> bool:
    """A second CPU is a framework's logical device. All of them share one allocator, so the pools do not reveal it."""
    if device.kind != "CPU" or device.index == 0:
        return True
    return any(source.has(device) for source in _framework_sources())


_recorder_source = _RecorderSource()


def _sources() -> List[Source]:
    return [_recorder_source, *_framework_sources()]


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
    for source in _sources():
        reader = source.reader(device)
        if reader is not None:
            return reader, source.name
    raise ValueError(_why_not(device))


_new, _now, _unpack = tuple.__new__, time.monotonic, struct.Struct("<5Q").unpack_from
_Bound = Tuple[Callable[[Any, Any], int], Any, Any, Any, str, str, List[_Sample]]
# Keyed by the name that the caller uses, so that a call in a training loop is one lookup, one C call and one tuple.
_bound: Dict[object, _Bound] = {}


def _bind(device: object) -> _Bound:
    where = parse_device(device)
    reader, source = _find_reader(where)
    if where not in _samples:
        _samples[where] = [_sample(where)]
    bound = (*reader, source, name_of(device), _samples[where])
    if isinstance(device, str):
        _bound[device] = bound
    return bound


def forget_readers() -> None:
    """Called when recording starts or ends, and after a fork: the counters then come from another source."""
    _bound.clear()


os.register_at_fork(after_in_child=forget_readers)


def _why_not(device: Device) -> str:
    if not any(_is_imported(framework) for framework in _COUNTING):
        names = " or ".join(framework["NAME"] for framework in _COUNTING)
        return f'no memory counters for "{device}"; import {names} first, or start recording'
    if device.kind == "CPU" and _exists(device):
        ways = [f"set {framework['HOST_POOL_VARIABLE']}=1 before {framework['NAME']} is imported" for framework in _COUNTING
                if "HOST_POOL_VARIABLE" in framework and _is_imported(framework)]
        if _recorder.active() is None:
            ways.append("record with 'vramscope run'")
        return f"Allocator stats not available for device '{device}'; {', or '.join(ways) or 'its memory is not recorded'}"
    return not_found(device)


def _all_devices() -> List[Device]:
    """The devices that have counters, GPUs first."""
    named = {device for source in _sources() for device in source.devices()}
    found = []
    for device in sorted(named, key=lambda device: (device.kind != "GPU", device.index)):
        try:
            _find_reader(device)
        except ValueError:
            continue
        found.append(device)
    if not found:
        raise ValueError(_why_not(Device("CPU", 0)))
    return found


_ALL: Any = object()


@overload
def memory_info(*, fresh: bool = False) -> MemoryInfos: ...
@overload
def memory_info(device: str, fresh: bool = False) -> MemoryInfo: ...


def memory_info(device: Any = _ALL, fresh: bool = False) -> Union[MemoryInfo, MemoryInfos]:
    """Returns the memory counters of one device, and the last sample of the card and the host; without a name, of every device that has
    counters. `fresh=True` takes a new sample.

    device: 'GPU:0', or any other name that the framework has for it, such as an entry of tf.config.list_physical_devices() or its name.
    Raises ValueError if the device is unknown or has no counters.
    """
    try:
        call, first, second, buffer, source, name, sampled = _bound[device]
    except (KeyError, TypeError):
        if device is _ALL:
            return MemoryInfos(memory_info(str(one), fresh) for one in _all_devices())
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


def reset_peak(device: Any = _ALL) -> None:
    """Resets `peak` to `current`, in the recorder and in the framework, so that both stay in agreement; without a name, on every device that
    has counters.

    Raises ValueError for a device without statistics.
    """
    if device is _ALL:
        for one in _all_devices():
            reset_peak(str(one))
        return
    where = parse_device(device)
    sources = [source for source in _sources() if source.reader(where) is not None]
    if not sources:
        raise ValueError(_why_not(where))
    if not all([source.reset(where) for source in sources]):
        raise ValueError(f"Cannot reset memory stats for device '{name_of(device)}'")


def reset_recorder(device: str) -> None:
    """Resets the recorder's peak after the framework's peak was reset. Does nothing if nothing is recorded."""
    if _recorder.active() is not None:
        _recorder_source.reset(parse_device(device))
