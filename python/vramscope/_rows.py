"""Rows of memory figures as the callbacks of all training loops keep them: history, table, plot."""
from __future__ import annotations

from typing import Any, Container, Dict, List, NamedTuple, Optional, Sequence, Union

from . import _chart, _units
from ._memory import memory_info, reset_peak
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

    def plot(self, path: Optional[str] = None) -> Any:
        """Current and peak over the rows. A matplotlib figure where that is installed, else SVG text; written to `path` if given."""
        series = {f"{device} {name}": [(place + 1, getattr(row, name)) for place, row in enumerate(
            row for row in self.rows if row.device == device)] for device in self.devices for name in ("current", "peak")}
        return _chart.draw_lines("Memory by moment", series, "moment", path)


class MemoryRows(Answers):
    """Reads memory when it is told to. `devices` None: the first GPU that PyTorch sees, else the CPU."""

    def __init__(self, devices: Union[str, Sequence[str], None] = None, target_batches: Union[Container[int], str] = (),
                 reset: Optional[str] = None) -> None:
        if reset not in (None, "epoch", "batch"):
            raise ValueError(f"reset={reset!r}: 'epoch', 'batch' or None")
        if isinstance(target_batches, str) and target_batches != "all":
            raise ValueError(f"target_batches={target_batches!r}: numbers from 1, or 'all'")
        self.devices = [devices] if isinstance(devices, str) else list(devices or ())
        self.rows = []
        self._targets, self._reset = target_batches, reset

    def read(self, phase: str, epoch: Optional[int], batch: Optional[int], at: str) -> None:
        """One row for each device, if this batch is wanted."""
        if batch is not None and self._targets != "all" and batch not in self._targets:   # type: ignore[operator]
            return
        if not self.devices:
            self.devices = [_first_device()]
        for device in self.devices:
            if at == "begin" and self._reset == ("epoch" if batch is None else "batch"):
                reset_peak(device)
            try:
                info = memory_info(device)
            except ValueError:      # nothing was allocated on it yet
                continue
            self.rows.append(Row(phase, epoch, batch, at, device, info.current, info.peak))


def _first_device() -> str:
    import torch
    return "GPU:0" if torch.cuda.is_available() else "CPU:0"
