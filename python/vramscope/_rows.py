"""Rows of memory figures as the callbacks of all training loops keep them: history, table, plot."""
from __future__ import annotations

from typing import Any, Container, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _chart, _units
from ._memory import memory_info, parse_device, reset_peak
from ._table import text_table


class Row(NamedTuple):
    """Memory at one moment on one device, in bytes."""

    phase: str              # train, evaluate, predict
    epoch: Optional[int]    # from 1; None outside of training
    batch: Optional[int]    # from 1; None: the whole epoch, or the whole evaluation
    at: str                 # begin or end
    device: str
    current: int
    peak: int


class Answers:
    """What the rows of a callback say."""

    rows: List[Row]
    devices: List[str]

    @property
    def history(self) -> Dict[str, List[Any]]:
        """Column name -> values, one for each row: pandas.DataFrame(callback.history) is the table."""
        return {name: [getattr(row, name) for row in self.rows] for name in Row._fields}

    def table(self) -> str:
        """The rows as text."""
        cells = [[row.phase, row.epoch, row.batch, row.at, row.device, _units.size(row.current), _units.size(row.peak)] for row in self.rows]
        return text_table(Row._fields, cells)

    def peak(self, phase: str = "train", device: Optional[str] = None) -> Optional[int]:
        """The highest peak of a phase; None if it was never seen."""
        return max((row.peak for row in self.rows if row.phase == phase and device in (None, row.device)), default=None)

    def plot(self, path: Optional[_chart.Path] = None) -> Any:
        """Current and peak over the rows. A matplotlib figure where that is installed, else SVG text; written to `path` if given."""
        series = {f"{device} {name}": [(place + 1, getattr(row, name)) for place, row in enumerate(
            row for row in self.rows if row.device == device)] for device in self.devices for name in ("current", "peak")}
        return _chart.draw_lines("Memory by moment", series, "moment", path)


class Spans:
    """What has begun and not ended, innermost last. A span goes on over a reset inside it: its peak is not only what comes after that."""

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
        """The peaks before the resets inside of it; also ends what has begun inside and did not end."""
        for place in reversed(range(len(self._open))):
            if self._open[place][0] == (phase, batch is None):
                before = self._open[place][1]
                del self._open[place:]
                return before
        return {}


def device_names(devices: Union[str, Sequence[str], None]) -> List[str]:
    """ValueError for what is no device's name."""
    try:
        names = [devices] if isinstance(devices, str) else list(devices or ())
    except TypeError:
        raise ValueError(f"devices={devices!r}: names as 'GPU:0'") from None
    for name in names:
        parse_device(name)
    return names


def check_choices(target_batches: object, reset: object) -> None:
    if reset not in (None, "epoch", "batch"):
        raise ValueError(f"reset={reset!r}: 'epoch', 'batch' or None")
    if target_batches != "all" and (isinstance(target_batches, str) or not hasattr(target_batches, "__contains__")):
        raise ValueError(f"target_batches={target_batches!r}: a list of numbers from 1, or 'all'")


class MemoryRows(Answers):
    """Reads memory when it is told to. `devices` None: the first GPU that PyTorch sees, else the CPU."""

    def __init__(self, devices: Union[str, Sequence[str], None] = None, target_batches: Union[Container[int], str] = (),
                 reset: Optional[str] = None) -> None:
        check_choices(target_batches, reset)
        self.devices = device_names(devices)
        self.rows = []
        self._targets, self._reset = target_batches, reset
        self._spans = Spans()

    def read(self, phase: str, epoch: Optional[int], batch: Optional[int], at: str) -> None:
        """One row for each device, if this batch is wanted."""
        if at not in ("begin", "end"):
            raise ValueError(f"at={at!r}: 'begin' or 'end'")
        if batch is not None and self._targets != "all" and batch not in self._targets:   # type: ignore[operator]
            return
        if not self.devices:
            self.devices = [_first_device()]
        devices = [device for device in self.devices if _has_counters(device)]
        before: Dict[str, int] = {}
        if at == "begin":
            # A reset for each batch is one for what holds batches, too: its peak begins with it.
            self._spans.begin(phase, batch, devices, self._reset == "batch" or (self._reset == "epoch" and batch is None))
        else:
            before = self._spans.end(phase, batch)
        for device in devices:
            info = memory_info(device)
            self.rows.append(Row(phase, epoch, batch, at, device, info.current, max(info.peak, before.get(device, 0))))


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
