"""Host memory that building graphs adds: of functions that are traced, and of graphs that sessions run.

The kernel's count before and after is reported for each; which of nested functions added what is for the analysis to say.
"""
from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple, Optional

from . import emit, lines, resident, walking

_BUILDING = "_vramscope_building"       # on a graph that sessions run: what it was when the program began to add to it
_growth = 0                             # bytes in all reports of outermost functions
_depth = 0                              # functions that are being traced; TensorFlow traces in one thread at a time


class Trace(NamedTuple):
    name: str
    line: Optional[lines.Line]
    host: int
    ops: int = 0
    anchor: int = 0


def trace_begins(name: str, function: Any, frame: FrameType) -> Trace:
    global _depth
    _depth += 1
    return Trace(name, _defined(function, frame), resident.now(), 0, walking.anchor(frame))


def trace_ended(trace: Trace, ok: bool, graph: Any) -> None:
    global _depth
    _depth = max(0, _depth - 1)
    walking.release(trace.anchor)
    if ok:
        _report(trace, graph, _depth)


def op_made(graph: Any, frame: FrameType) -> None:
    """In a graph that is not a function's."""
    if not hasattr(graph, _BUILDING):
        setattr(graph, _BUILDING, Trace("graph", lines.user_line(frame), resident.now(), len(graph.get_operations()) - 1))


def session_runs(graph: Any) -> None:
    """From the first op since the last run to this one, the program builds its graph."""
    building = getattr(graph, _BUILDING, None)
    if building is not None:
        delattr(graph, _BUILDING)
        _report(building, graph, 0)


def reported_growth() -> int:
    return _growth


def _report(trace: Trace, graph: Any, depth: int) -> None:
    global _growth
    if trace.line is not None:
        host = resident.now()
        _growth += host - trace.host if depth == 0 else 0
        emit.report("traced_graph", function=trace.name, file=trace.line.file, line=trace.line.line, depth=depth,
                    ops=len(graph.get_operations()) - trace.ops, host_before=trace.host, host_after=host)


def _defined(function: Any, frame: FrameType) -> Optional[lines.Line]:
    """Where the user wrote the function. One of a framework (a layer that is built, a training step of Keras) gets the user's line that
    has it traced."""
    code = getattr(function, "__code__", None)
    if code is not None and lines.is_user(code):
        return lines.Line(code.co_filename, code.co_firstlineno, code.co_name)
    return lines.user_line(frame)
