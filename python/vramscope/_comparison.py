"""Several programs side by side: one table, one plot."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from . import _chart, _units
from ._table import text_table


class Comparison:
    """peaks: name -> {column: bytes}; every name has the same columns. seconds and samples_per_s: name -> time of a step, and samples per
    second, where that was measured."""

    def __init__(self, what: str, peaks: Mapping[str, Mapping[str, Optional[int]]], notes: Sequence[str] = (),
                 seconds: Optional[Mapping[str, Optional[float]]] = None, samples_per_s: Optional[Mapping[str, Optional[float]]] = None) -> None:
        self.peaks: Dict[str, Dict[str, Optional[int]]] = {name: dict(columns) for name, columns in peaks.items()}
        self.seconds: Dict[str, Optional[float]] = dict(seconds or {})
        self.samples_per_s: Dict[str, Optional[float]] = dict(samples_per_s or {})
        self.notes: List[str] = list(notes)
        self._what = what

    def table(self) -> str:
        """As text, with the notes below."""
        columns = list(next(iter(self.peaks.values())))
        speeds = [(title, shown, values) for title, shown, values in (("time per step", _units.duration, self.seconds),
                                                                       ("samples per s", _units.rate, self.samples_per_s)) if values]
        rows = [[name, *(_units.size(values[column]) for column in columns), *(shown(speed[name]) for _, shown, speed in speeds)]
                for name, values in self.peaks.items()]
        return "\n".join([text_table([self._what, *columns, *(title for title, _, _ in speeds)], rows), *self.notes])

    def plot(self, path: Optional[_chart.Path] = None) -> Any:
        """Grouped bars. A matplotlib figure where that is installed, else SVG text; written to `path` if given."""
        groups = {f"{name}, {_units.duration(self.seconds[name])}" if self.seconds else name: columns for name, columns in self.peaks.items()}
        title = f"Memory by {self._what}" + (", and the time of a step" if self.seconds else "")
        return _chart.draw_bars(title, groups, path)

    def __str__(self) -> str:
        return self.table()
