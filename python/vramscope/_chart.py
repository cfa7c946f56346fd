"""Two small charts: with matplotlib if it is installed, else as SVG; the live view in a notebook is always SVG."""
from __future__ import annotations

import os
from html import escape
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from . import _units
from ._writing import write_text

Path = Union[str, "os.PathLike[str]"]
Point = Optional[Tuple[float, float]]       # x, bytes; None: a gap in the line
Ticks = Sequence[Tuple[float, str]]         # x, label
_COLORS = ("#3b6fd4", "#d9822b", "#2a9d6f", "#c0455a", "#7d5bbe", "#5f6b7a")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 260, 78, 34, 30


def _ceiling(value: float) -> float:
    """The smallest round number of bytes at or above the value whose quarter is round too."""
    step = 1.0
    while step * 4 < value:
        step *= 2
    return step * 4


class _Canvas:
    def __init__(self, title: str, top: float) -> None:
        self.top = _ceiling(max(top, 1024))
        self.parts: List[str] = [f'<text x="{_LEFT}" y="18" font-size="13" font-weight="600">{escape(title)}</text>']
        for quarter in range(5):
            value = self.top * quarter / 4
            y = self.y(value)
            self.parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-opacity=".15"/>')
            self.parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" font-size="11">{_units.size(value)}</text>')

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * value / self.top

    def legend(self, names: Sequence[str]) -> None:
        x = _LEFT
        for index, name in enumerate(names):
            self.parts.append(f'<rect x="{x}" y="{_HEIGHT - 12}" width="10" height="10" fill="{_COLORS[index % len(_COLORS)]}"/>')
            self.parts.append(f'<text x="{x + 14}" y="{_HEIGHT - 3}" font-size="11">{escape(name)}</text>')
            x += 26 + 7 * len(name)

    def svg(self) -> str:
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
                f'font-family="system-ui, sans-serif" fill="currentColor">{"".join(self.parts)}</svg>')


def _fitting(ticks: Ticks) -> Ticks:
    """As many of the labels as fit side by side, evenly chosen, the last one always."""
    room = max(1, int((_WIDTH - 8 - _LEFT) / (7 * max((len(label) for _, label in ticks), default=1) + 12)))
    every = -(-len(ticks) // room) if ticks else 1
    return list(ticks)[::-1][::every][::-1]


def _segments(points: Sequence[Point]) -> List[List[Tuple[float, float]]]:
    """The points between two gaps."""
    out: List[List[Tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            out.append([])
        else:
            out[-1].append(point)
    return [segment for segment in out if segment]


_MOST_DOTS = 60


def lines(title: str, series: Mapping[str, Sequence[Point]], x_name: str, ticks: Ticks = ()) -> str:
    """series: name -> points. Without ticks the x axis shows its last value."""
    points = [point for one in series.values() for point in one if point is not None]
    canvas = _Canvas(title, max((y for _, y in points), default=0))
    low = min((x for x, _ in points), default=0.0)
    span = max((x for x, _ in points), default=1.0) - low or 1.0
    place = lambda x: _LEFT + (_WIDTH - 8 - _LEFT) * (x - low) / span  # noqa: E731
    for index, one in enumerate(series.values()):
        color = _COLORS[index % len(_COLORS)]
        for segment in _segments(one):
            path = " ".join(f"{place(x):.1f},{canvas.y(y):.1f}" for x, y in segment)
            canvas.parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.8"/>')
            if ticks and len(segment) <= _MOST_DOTS:
                canvas.parts += [f'<circle cx="{place(x):.1f}" cy="{canvas.y(y):.1f}" r="2.4" fill="{color}"/>' for x, y in segment]
    for x, label in _fitting(ticks):
        anchor = "start" if place(x) < _LEFT + 40 else "end" if place(x) > _WIDTH - 60 else "middle"
        canvas.parts.append(f'<text x="{place(x):.1f}" y="{_HEIGHT - 20}" text-anchor="{anchor}" font-size="11">{escape(label)}</text>')
    if not ticks:
        canvas.parts.append(f'<text x="{_WIDTH - 8}" y="{_HEIGHT - 20}" text-anchor="end" font-size="11">{escape(x_name)} {low + span:.4g}</text>')
    canvas.legend(list(series))
    return canvas.svg()


def bars(title: str, groups: Mapping[str, Mapping[str, Optional[float]]]) -> str:
    """groups: name -> {bar: bytes}; every group has the same bars."""
    names = list(next(iter(groups.values()), {}))
    canvas = _Canvas(title, max((value or 0 for group in groups.values() for value in group.values()), default=0))
    slot = (_WIDTH - 8 - _LEFT) / max(1, len(groups))
    width = min(48.0, slot * 0.8 / max(1, len(names)))
    for place, (group, values) in enumerate(groups.items()):
        begin = _LEFT + slot * place + (slot - width * len(names)) / 2
        for index, name in enumerate(names):
            value = values.get(name) or 0
            x, y = begin + width * index, canvas.y(value)
            canvas.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width - 2:.1f}" height="{_HEIGHT - _BOTTOM - y:.1f}" '
                                f'fill="{_COLORS[index % len(_COLORS)]}"><title>{escape(group)}: {escape(name)} {_units.size(value)}</title></rect>')
        canvas.parts.append(f'<text x="{_LEFT + slot * (place + .5):.1f}" y="{_HEIGHT - 18}" text-anchor="middle" font-size="11">'
                            f'{escape(group)}</text>')
    canvas.legend(names)
    return canvas.svg()


def _pyplot() -> Any:
    try:
        from matplotlib.figure import Figure      # no global state, no display
    except ImportError:
        return None
    return Figure


def _finish(figure: Any, path: Optional[Path]) -> Any:
    if path is not None:
        figure.savefig(path)
    return figure


def _only_svg(svg: str, path: Optional[Path]) -> str:
    if path is not None:
        if not os.fspath(path).endswith(".svg"):
            raise ValueError(f"{path}: only .svg is supported without matplotlib; install matplotlib, or use a name that ends in .svg")
        write_text(path, svg)
    return svg


def draw_lines(title: str, series: Mapping[str, Sequence[Point]], x_name: str, path: Optional[Path], ticks: Ticks = ()) -> Any:
    """A matplotlib figure if it is installed, else SVG text."""
    figure_type = _pyplot()
    if figure_type is None:
        return _only_svg(lines(title, series, x_name, ticks), path)
    figure = figure_type(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    for index, (name, points) in enumerate(series.items()):
        for place, segment in enumerate(_segments(points)):
            axes.plot([x for x, _ in segment], [y / (1 << 20) for _, y in segment], label=name if place == 0 else None,
                      color=_COLORS[index % len(_COLORS)], marker="o" if ticks and len(segment) <= _MOST_DOTS else None, markersize=3)
    axes.set(title=title, xlabel=x_name, ylabel="MiB", ylim=(0, None))
    if ticks:
        shown = _fitting(ticks)
        axes.set_xticks([x for x, _ in shown], [label for _, label in shown])
    axes.legend()
    return _finish(figure, path)


def draw_bars(title: str, groups: Mapping[str, Mapping[str, Optional[float]]], path: Optional[Path]) -> Any:
    figure_type = _pyplot()
    if figure_type is None:
        return _only_svg(bars(title, groups), path)
    figure = figure_type(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    names = list(next(iter(groups.values()), {}))
    width = 0.8 / max(1, len(names))
    for index, name in enumerate(names):
        places = [place + width * index for place in range(len(groups))]
        axes.bar(places, [(group.get(name) or 0) / (1 << 20) for group in groups.values()], width, label=name)
    axes.set(title=title, ylabel="MiB", xticks=[place + width * (len(names) - 1) / 2 for place in range(len(groups))], xticklabels=list(groups))
    axes.legend()
    return _finish(figure, path)
