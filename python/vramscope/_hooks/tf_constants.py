"""Constants that are baked into a graph: every trace of the function holds its own copy, and the device gets another one."""
from __future__ import annotations

from typing import Any

from . import emit, lines

_WORTH_SAYING = 1 << 20


def made(op: Any, line: lines.Line) -> None:
    output = op.outputs[0]
    count = output.shape.num_elements()
    if not count or count < 1024:
        return
    size = count * output.dtype.size
    if size >= _WORTH_SAYING:
        emit.fact("baked_constant", key=op.name, op=op.name, bytes=size, shape=str(output.shape), dtype=output.dtype.name,
                  file=line.file, line=line.line, function=line.function)
