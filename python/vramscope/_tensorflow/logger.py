"""`memory_logger`: the memory of a device every few seconds, from a separate thread."""
from __future__ import annotations

import csv
import itertools
import operator
import sys
import threading
import time
from typing import Any, Callable, Optional, TextIO, Tuple, Union

from .. import _units as units
from .. import tensorboard
from .._memory import MemoryInfo, memory_info
from .._writing import open_without_links

Step = Union[Callable[[], int], Any]       # or what has a value, such as a tf.Variable


class memory_logger:
    """`with memory_logger(every=1.0, to="memory.csv"):` logs the memory of one device every `every` seconds, from a separate thread.

    to: "stdout", a file name ending in .csv, "tensorboard:FOLDER", an open text file, or a function that takes a MemoryInfo.
    step: the step that the program has reached, as TensorBoard's x axis and a column of the CSV file: a function that returns an integer, or
        a counter such as `model.optimizer.iterations`. Without it TensorBoard's points are numbered from 0.
    A value is also logged at the start, at the end, and whenever `log()` is called.
    """

    def __init__(self, every: float = 1.0, to: Union[str, TextIO, Callable[[MemoryInfo], None]] = "stdout",
                 device: Optional[str] = None, step: Optional[Step] = None) -> None:
        if not isinstance(every, (int, float)) or not 0 < every <= threading.TIMEOUT_MAX:
            raise ValueError(f"every={every!r}: expected the seconds between two values, greater than 0")
        from ..tf import default_device
        self.device = device or default_device()
        memory_info(self.device)        # an unknown device fails here, before a file is made
        self.entries = 0
        self._every = every
        self._step = step
        self._step_now()                # so does a step that is not a number
        self._write, self._close = _sink(to)
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._lock = threading.Lock()

    def log(self, step: Optional[int] = None) -> None:
        """Logs one value now, at this step if one is given."""
        info = memory_info(self.device, fresh=True)
        step = self._step_now() if step is None else operator.index(step)
        with self._lock:
            self._write(info, step)
            self.entries += 1

    def _step_now(self) -> Optional[int]:
        if self._step is None:
            return None
        value = self._step() if callable(self._step) else self._step
        try:
            return operator.index(value.numpy() if hasattr(value, "numpy") else value)
        except TypeError:
            raise TypeError(f"step={self._step!r}: expected a counter, or a function that returns an integer") from None

    def __enter__(self) -> "memory_logger":
        if self._thread is not None:
            raise RuntimeError("this memory_logger has already been used; create a new one")
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


Write = Callable[[MemoryInfo, Optional[int]], None]


def _sink(to: Union[str, TextIO, Callable[[MemoryInfo], None]]) -> Tuple[Write, Callable[[], None]]:
    """How to write one value, and what to do at the end."""
    if callable(to):
        function = to
        return lambda info, step: function(info), lambda: None
    if isinstance(to, str) and to.startswith("tensorboard:") and to != "tensorboard:":
        writer, numbers = tensorboard.Writer(to.partition(":")[2]), itertools.count()

        def write_point(info: MemoryInfo, step: Optional[int]) -> None:
            writer.add(tensorboard.memory_scalars(info), next(numbers) if step is None else step)
        return write_point, writer.close
    if isinstance(to, str) and to.endswith(".csv"):
        file = open(to, "w", newline="", opener=open_without_links)  # noqa: SIM115
        table = csv.writer(file)
        table.writerow(["time", "step", *MemoryInfo._fields])

        def write_row(info: MemoryInfo, step: Optional[int]) -> None:
            table.writerow([f"{time.time():.6f}", *("" if value is None else value for value in (step, *info))])
            file.flush()
        return write_row, file.close
    if to != "stdout" and not hasattr(to, "write"):
        raise ValueError(f"to={to!r}: expected 'stdout', a name ending in .csv, 'tensorboard:FOLDER', an open file or a function")
    text: TextIO = sys.stdout if isinstance(to, str) else to

    def write_line(info: MemoryInfo, step: Optional[int]) -> None:
        print(f"{time.strftime('%H:%M:%S')}{'' if step is None else f' step {step}'} {info.device} current {units.size(info.current)} "
              f"peak {units.size(info.peak)} pool {units.size(info.pool)} host {units.size(info.host_rss)}", file=text, flush=True)
    return write_line, lambda: None
