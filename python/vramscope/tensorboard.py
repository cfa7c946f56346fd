"""Scalars for TensorBoard, written without TensorFlow or TensorBoard.

    writer = vramscope.tensorboard.Writer("logs/run1")
    writer.add({"memory/GPU:0/peak (MiB)": 291.5}, step=3)

    vramscope.tensorboard.write_trace("runs/today", "logs/today")       # a run that was recorded before, step by step

An event file is a sequence of TFRecords (length, masked CRC32C, data, masked CRC32C), each an `Event` message. Values are float32
tensors, the only ones that TensorBoard's data server reads: memory is in MiB.
"""
from __future__ import annotations

import itertools
import math
import operator
import os
import socket
import struct
import threading
import time
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Dict, List, Mapping, Optional, Set, Type, Union

from ._memory import MemoryInfo
from .trace import Trace

_POLYNOMIAL = 0x82F63B78           # CRC-32C, reflected
_numbers = itertools.count()


def _make_table() -> List[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _make_table()


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    value = crc32c(data)
    return struct.pack("<I", (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """One TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


# Protocol buffers, as much as is needed. Field numbers of tensorflow.Event, Summary, SummaryMetadata and TensorProto.
def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


_DT_FLOAT, _CLASS_SCALAR = 1, 1
_SCALAR_METADATA = _bytes(1, _bytes(1, b"scalars")) + _number(4, _CLASS_SCALAR)


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


def _scalar(tag: str, value: float, first: bool) -> bytes:
    tensor = _number(1, _DT_FLOAT) + _bytes(2, b"") + _bytes(5, _float32(value))
    return _bytes(1, _bytes(1, str(tag).encode()) + (_bytes(9, _SCALAR_METADATA) if first else b"") + _bytes(8, tensor))


def _new_file(folder: Path) -> FileIO:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}.vramscope"
    return FileIO(folder / name, "x")


class Writer:
    """An event file in `folder`. Each `add` reaches the file immediately, so that no points are lost if the run is killed."""

    def __init__(self, folder: Union[str, "os.PathLike[str]"]) -> None:
        self._file = _new_file(Path(folder))
        self.path = Path(self._file.name)
        self._lock = threading.Lock()
        self._known: Set[str] = set()
        self._write(_double(1, time.time()) + _bytes(3, b"brain.Event:2"))

    def _write(self, event: bytes) -> None:
        with self._lock:
            self._file.write(record(event))

    def add(self, scalars: Mapping[str, Optional[float]], step: int, wall_time: Optional[float] = None) -> None:
        """Adds one point per tag at this step; None is skipped. wall_time: seconds since 1970, by default now."""
        step = operator.index(step)
        values = b"".join(_scalar(tag, float(value), tag not in self._known) for tag, value in scalars.items() if value is not None)
        self._known.update(tag for tag, value in scalars.items() if value is not None)
        self._write(_double(1, time.time() if wall_time is None else wall_time) + _number(2, step) + _bytes(5, values))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()


_MIB = 1 << 20


def memory_scalars(info: MemoryInfo, prefix: str = "memory") -> Dict[str, Optional[float]]:
    """The numbers of a device by the names that TensorBoard shows, in MiB."""
    values = {"current": info.current, "peak": info.peak, "pool": info.pool, "cached": info.cached,
              "largest free block": info.largest_free_block, "device used": info.device_used, "host": info.host_rss}
    scalars: Dict[str, Optional[float]] = {
        f"{prefix}/{info.device}/{name} (MiB)": None if value is None else value / _MIB for name, value in values.items()}
    if info.cached is not None and info.largest_free_block is not None:
        # The two are read one after the other: a block freed in between must not show as less than none.
        scalars[f"{prefix}/{info.device}/fragmentation"] = max(0.0, 1 - info.largest_free_block / info.cached) if info.cached else 0.0
    return scalars


def write_trace(trace: Union[str, "os.PathLike[str]", Trace], folder: Union[str, "os.PathLike[str]"]) -> List[Path]:
    """Writes the steps of a recorded run for TensorBoard: memory and time of each, with the number of the step as the x axis.

    Each process of a run with several gets a folder of its own, which TensorBoard shows as one line each. Returns the event files.
    ValueError where the trace has no steps.
    """
    processes = (trace if isinstance(trace, Trace) else Trace(trace))._processes()
    return [_write_process(each, Path(folder) if len(processes) == 1 else Path(folder) / _folder_name(each.path)) for each in processes]


def _folder_name(file: Path) -> str:
    """A name inside the folder: the stem of "...vram" is ".."."""
    return file.name if file.stem in (".", "..") else file.stem


def _write_process(trace: Trace, folder: Path) -> Path:
    events = trace._export("tensorboard")
    with _new_file(folder) as file:
        file.write(events)
    return Path(file.name)
