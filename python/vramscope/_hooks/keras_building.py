"""Host memory that putting a model together adds: layers that are called with symbols, before anything is traced.

The kernel's count before and after each such call is added up by the line that creates the layer, and reported with the variables.
"""
from __future__ import annotations

import atexit
from typing import Dict, List, Optional, Tuple

from . import emit, lines, resident, tf_building, training

_added: Dict[lines.Line, List[int]] = {}        # line -> layers, bytes; since the last report


def begins() -> Tuple[int, int]:
    """A layer is called with symbols by the program itself, or by a model that is built."""
    return resident.now(), tf_building.reported_growth()


def ended(begun: Tuple[int, int], line: Optional[lines.Line]) -> None:
    if line is None:
        return
    host, reported = begun
    added = _added.setdefault(line, [0, 0])
    added[0] += 1
    added[1] += resident.now() - host - (tf_building.reported_growth() - reported)      # what is reported as a graph counts once


def report() -> None:
    for line, (layers, grown) in list(_added.items()):
        emit.report("built_layers", file=line.file, line=line.line, layers=layers, bytes=max(0, grown))
    _added.clear()


def install() -> None:
    training.before_tags.append(report)
    atexit.register(lambda: emit.quietly(report))
