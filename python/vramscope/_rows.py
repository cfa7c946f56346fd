"""Memory readings, as collected by the callbacks for all training loops: history, table, plot."""
from __future__ import annotations

import csv
import io
import time
from typing import Any, Container, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _chart, _units
from ._devices import name_of, parse_device
from ._memory import memory_info, reset_peak
from ._table import text_table
from ._trackers import Trackers
from ._writing import write_text


class Row(NamedTuple):
    """A memory reading of one device, in bytes. Epochs and batches are numbered as in the progress bar of the training loop."""

    phase: str              # train, evaluate, predict
    epoch: Optional[int]    # from 1; None outside training
    batch: Optional[int]    # from 1 in each epoch; None: the whole epoch, or the whole evaluation
    at: str                 # begin or end
    device: str
    current: int
    peak: int


class Pace:
    """Time per training step, in the newest epoch: from the end of its first batch to that of its last one. Tracing, evaluations and what
    happens between epochs do not count."""

    def __init__(self) -> None:
        self.seconds: Optional[float] = None
        self._first: Optional[Tuple[int, float]] = None

    def epoch_begins(self) -> None:
        self._first = None

    def batch_ended(self, batch: int) -> None:
        now = time.perf_counter()
        if self._first is None:
            self._first = batch, now
        elif batch > self._first[0]:
            self.seconds = (now - self._first[1]) / (batch - self._first[0])


class Answers:
    """Views of the rows that a callback collected."""

    rows: List[Row]
    devices: List[str]
    _reset: Optional[str]       # when the peak is reset: "run", "epoch", "batch"; None: never

    @property
    def history(self) -> Dict[str, List[Any]]:
        """Column name -> values, one per row: pandas.DataFrame(callback.history) is the table."""
        return {name: [getattr(row, name) for row in self.rows] for name in Row._fields}

    def table(self) -> str:
        """The rows as text."""
        cells = [[row.phase, row.epoch, row.batch, row.at, row.device, _units.size(row.current), _units.size(row.peak)] for row in self.rows]
        return text_table(Row._fields, cells)

    def peak(self, phase: str = "train", device: Optional[str] = None) -> Optional[int]:
        """The highest peak of a phase; None if the phase never ran."""
        return max((row.peak for row in self.rows if row.phase == phase and device in (None, row.device)), default=None)

    def summary(self) -> None:
        """Prints the table, as model.summary() prints the layers."""
        print(self.table())

    def to_csv(self, path: _chart.Path) -> None:
        """The rows with exact bytes, as a CSV file."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(Row._fields)
        table.writerows(self.rows)
        write_text(path, text.getvalue())

    def plot(self, path: Optional[_chart.Path] = None) -> Any:
        """Plots current and peak at the end of each epoch, evaluation, prediction and selected batch: a matplotlib figure if it is installed,
        else SVG text. Written to `path` if given."""
        series: Dict[str, List[_chart.Point]] = {}
        ticks: Dict[int, str] = {}
        for device in self.devices:
            previous: Dict[str, Row] = {}
            for place, row in enumerate(row for row in self.rows if row.device == device and row.at == "end"):
                kind = _kind(row)
                peaks = series.setdefault(f"{device} peak, {kind}", [])
                if self._falls_between(previous.get(kind), row):
                    peaks.append(None)
                peaks.append((place, row.peak))
                series.setdefault(f"{device} current", []).append((place, row.current))
                previous[kind], ticks[place] = row, _label(row)
        return _chart.draw_lines(f"Memory by epoch and batch ({_PEAKS[self._reset]})", series, "", path, list(ticks.items()))

    def _falls_between(self, before: Optional[Row], row: Row) -> bool:
        """The peak of batches was reset with the epoch: the line has a gap there, not an edge that looks like freed memory."""
        return self._reset == "epoch" and before is not None and row.batch is not None and row.epoch != before.epoch


_PEAKS = {None: "peak since the last reset", "run": "peak since the run began", "epoch": "peak since each epoch began",
          "batch": "peak of each epoch and batch"}


def _kind(row: Row) -> str:
    whole = {"train": "epochs", "evaluate": "evaluations", "predict": "predictions"}[row.phase]
    return whole if row.batch is None else "batches" if row.phase == "train" else f"batches of {whole}"


def _label(row: Row) -> str:
    parts = [f"epoch {row.epoch}"] if row.epoch is not None else []
    parts += [row.phase] if row.phase != "train" else []
    parts += [f"batch {row.batch}"] if row.batch is not None else []
    return ", ".join(parts)


class Spans:
    """Open spans, innermost last. A span continues across a reset inside it, so its peak includes what came before the reset."""

    def __init__(self) -> None:
        self._open: List[Tuple[Tuple[str, bool], Dict[str, int]]] = []      # the second: device -> peak before a reset

    def begin(self, phase: str, batch: Optional[int], devices: Sequence[str], reset: bool) -> None:
        self.end(phase, batch)          # left over from a loop that failed
        for device in devices if reset else ():
            peak = memory_info(device).peak
            for _, before in self._open:
                before[device] = max(before.get(device, 0), peak)
            reset_peak(device)
        self._open.append(((phase, batch is None), {}))

    def end(self, phase: str, batch: Optional[int]) -> Dict[str, int]:
        """Returns the peaks before the resets inside the span; also ends unfinished spans inside it."""
        for place in reversed(range(len(self._open))):
            if self._open[place][0] == (phase, batch is None):
                before = self._open[place][1]
                del self._open[place:]
                return before
        return {}


def device_names(devices: Union[str, Sequence[str], None]) -> List[str]:
    """Raises ValueError for anything that is not a device name."""
    try:
        given = [devices] if isinstance(devices, str) else list(devices or ())
    except TypeError:
        raise ValueError(f"devices={devices!r}: expected device names such as 'GPU:0'") from None
    for device in given:
        parse_device(device)
    return [name_of(device) for device in given]


def check_choices(target_batches: object, reset: object, resets: Sequence[Optional[str]] = ("epoch", "batch", None)) -> None:
    if reset not in resets:
        raise ValueError(f"reset={reset!r}: expected one of {', '.join(map(repr, resets))}")
    if target_batches != "all" and (isinstance(target_batches, str) or not hasattr(target_batches, "__contains__")):
        raise ValueError(f"target_batches={target_batches!r}: expected a list of numbers from 1, or 'all'")


class MemoryRows(Answers):
    """Reads memory on request. With `devices` None, it reads the first GPU that PyTorch sees, else the CPU."""

    def __init__(self, devices: Union[str, Sequence[str], None] = None, target_batches: Union[Container[int], str] = (),
                 reset: Optional[str] = None, log_to: Union[str, Sequence[str]] = ()) -> None:
        check_choices(target_batches, reset)
        self.devices = device_names(devices)
        self.rows = []
        self._targets, self._reset = target_batches, reset
        self._spans = Spans()
        self._trackers = Trackers(log_to)
        self._counts: Dict[Tuple[str, bool], int] = {}      # phase, whether it is a batch -> how many there were

    def read(self, phase: str, epoch: Optional[int], batch: Optional[int], at: str) -> None:
        """Adds one row per device, if this batch was requested."""
        if at not in ("begin", "end"):
            raise ValueError(f"at={at!r}: expected 'begin' or 'end'")
        kind = phase, batch is not None
        if at == "begin":
            self._counts[kind] = self._counts.get(kind, 0) + 1
        if batch is not None and self._targets != "all" and batch not in self._targets:   # type: ignore[operator]
            return
        if not self.devices:
            self.devices = [_first_device()]
        devices = [device for device in self.devices if _has_counters(device)]
        before: Dict[str, int] = {}
        if at == "begin":
            self._trackers.check()
            # Resetting at each batch also resets at the epoch that contains it, whose peak starts with its first batch.
            self._spans.begin(phase, batch, devices, self._reset == "batch" or (self._reset == "epoch" and batch is None))
        else:
            before = self._spans.end(phase, batch)
        rows = []
        for device in devices:
            info = memory_info(device)
            rows.append(Row(phase, epoch, batch, at, device, info.current, max(info.peak, before.get(device, 0))))
        self.rows += rows
        if at == "end":
            self._trackers.add(phase if batch is None else f"{phase} batch", self._point(phase, epoch, batch), rows)

    def _point(self, phase: str, epoch: Optional[int], batch: Optional[int]) -> int:
        """On the axis of a tracker: batches count from 1 since the first one, epochs from 0, as in the loggers of Lightning."""
        if batch is None and epoch is not None:
            return epoch - 1
        return self._counts.get((phase, batch is not None), 1)


def _has_counters(device: str) -> bool:
    try:
        memory_info(device)
    except ValueError:
        if parse_device(device).kind == "GPU":
            raise
        return False        # nothing was allocated on it yet
    return True


def _first_device() -> str:
    import torch
    return "GPU:0" if torch.cuda.is_available() else "CPU:0"
