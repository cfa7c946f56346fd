"""TensorFlow: allocator statistics as functions and as ops.

    import vramscope.tf as vtf
    vtf.get_memory_info("GPU:0")             # {"current", "peak", "limit"}
    with tf.device("/GPU:0"):
        used = vtf.bytes_in_use()            # an op: eager, in tf.function, in a tf.compat.v1 graph

An op gives the value at the moment when TensorFlow runs it. TensorFlow runs an op as soon as its inputs are there: an op without inputs can run
at any point of the function, so say where with `tf.control_dependencies`.
"""
from __future__ import annotations

import csv
import itertools
import sys
import threading
import time
from typing import Callable, Dict, Optional, TextIO, Tuple, Union

import tensorflow as tf

from . import _units as units
from . import tensorboard
from ._memory import MemoryInfo, memory_info, parse_device, reset_recorder
from ._tensorflow import ops

__all__ = ["bytes_in_use", "bytes_limit", "default_device", "get_memory_info", "max_bytes_in_use", "memory_logger", "reset_memory_stats"]


def get_memory_info(device: str = "GPU:0") -> Dict[str, int]:
    """What `tf.config.experimental.get_memory_info` gives, and `limit`: the bytes the allocator may take (0: it does not say)."""
    from ._tensorflow import stats
    info = dict(tf.config.experimental.get_memory_info(device))      # TensorFlow's own errors for a wrong device
    reader = stats.SOURCE.reader(parse_device(device))      # which has read already
    info["limit"] = reader.buffer[2] if reader is not None else 0
    return info


def reset_memory_stats(device: str = "GPU:0") -> None:
    """The peak starts again from the current value, as `tf.config.experimental.reset_memory_stats` does."""
    tf.config.experimental.reset_memory_stats(device)
    reset_recorder(device)


def _refuse_xla(name: str) -> None:
    from tensorflow.python.framework import ops as tf_ops
    from tensorflow.python.ops import control_flow_util
    if not tf.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(tf_ops.get_default_graph()):
        raise NotImplementedError(
            f"vramscope.tf.{name}() cannot run inside a function compiled by XLA (jit_compile=True; Keras 3 compiles with XLA on a GPU "
            "unless told otherwise): XLA plans the function's memory as one block. Read it outside of the function, or compile the model "
            "with jit_compile=False")


def bytes_in_use(name: Optional[str] = None) -> tf.Tensor:
    """Op: bytes that the allocator of this op's device has handed out. int64 scalar on the host; never waits for the device."""
    _refuse_xla("bytes_in_use")
    return ops.module().vramscope_bytes_in_use(name=name)


def max_bytes_in_use(name: Optional[str] = None) -> tf.Tensor:
    """Op: the highest `bytes_in_use` since the start or the last reset."""
    _refuse_xla("max_bytes_in_use")
    return ops.module().vramscope_max_bytes_in_use(name=name)


def bytes_limit(name: Optional[str] = None) -> tf.Tensor:
    """Op: the bytes that the allocator may take."""
    _refuse_xla("bytes_limit")
    return ops.module().vramscope_bytes_limit(name=name)


class memory_logger:
    """`with memory_logger(every=1.0, to="memory.csv"):` logs one device's memory every so many seconds, from a thread of its own.

    to: "stdout", a file name ending in .csv, "tensorboard:FOLDER", an open text file, or a function that is given a MemoryInfo.
    A value is also logged at the begin, at the end, and wherever `log()` is called.
    """

    def __init__(self, every: float = 1.0, to: Union[str, TextIO, Callable[[MemoryInfo], None]] = "stdout",
                 device: Optional[str] = None) -> None:
        if not isinstance(every, (int, float)) or not 0 < every <= threading.TIMEOUT_MAX:
            raise ValueError(f"every={every!r}: seconds between two values, more than 0")
        self.device = device or default_device()
        memory_info(self.device)        # an unknown device fails here, before a file is made
        self.entries = 0
        self._every = every
        self._write, self._close = _sink(to)
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._lock = threading.Lock()

    def log(self) -> None:
        """One value now."""
        info = memory_info(self.device, fresh=True)
        with self._lock:
            self._write(info)
            self.entries += 1

    def __enter__(self) -> "memory_logger":
        if self._thread is not None:
            raise RuntimeError("this memory_logger was used already; make another one")
        self.log()
        self._thread = threading.Thread(target=self._run, name="vramscope-logger", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.log()
        self._close()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self.log()


def default_device() -> str:
    """The first GPU, or the CPU where there is none."""
    return "GPU:0" if tf.config.list_physical_devices("GPU") else "CPU:0"


def _sink(to: Union[str, TextIO, Callable[[MemoryInfo], None]]) -> Tuple[Callable[[MemoryInfo], None], Callable[[], None]]:
    """How to write one value, and what to do at the end."""
    if callable(to):
        return to, lambda: None
    if isinstance(to, str) and to.startswith("tensorboard:") and to != "tensorboard:":
        writer, steps = tensorboard.Writer(to.partition(":")[2]), itertools.count()
        return lambda info: writer.add(tensorboard.memory_scalars(info.device), next(steps)), writer.close
    if isinstance(to, str) and to.endswith(".csv"):
        file = open(to, "w", newline="")  # noqa: SIM115
        table = csv.writer(file)
        table.writerow(["time", *MemoryInfo._fields])

        def write_row(info: MemoryInfo) -> None:
            table.writerow([f"{time.time():.6f}", *("" if value is None else value for value in info)])
            file.flush()
        return write_row, file.close
    if to != "stdout" and not hasattr(to, "write"):
        raise ValueError(f"to={to!r}: 'stdout', a name ending in .csv, 'tensorboard:FOLDER', an open file or a function")
    text: TextIO = sys.stdout if isinstance(to, str) else to

    def write_line(info: MemoryInfo) -> None:
        print(f"{time.strftime('%H:%M:%S')} {info.device} current {units.size(info.current)} peak {units.size(info.peak)} "
              f"pool {units.size(info.pool)} host {units.size(info.host_rss)}", file=text, flush=True)
    return write_line, lambda: None
