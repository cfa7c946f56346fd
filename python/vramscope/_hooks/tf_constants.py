"""Constants that are baked into a graph: every trace of the function holds its own copy, and the device gets another one."""
from __future__ import annotations

from typing import Any, Dict, Tuple

from . import emit, lines

_WORTH_SAYING = 1 << 20
_OF_GRADIENTS = ("gradients/", "gradient_tape/", "_grad/")     # TensorFlow's own: zeros that a loop's gradient starts from
_copies: Dict[Tuple[str, str], int] = {}        # (line, op) -> graphs that hold it


def made(op: Any, line: lines.Line) -> None:
    if any(scope in op.name for scope in _OF_GRADIENTS):
        return
    output = op.outputs[0]
    count = output.shape.num_elements()
    if not count or count < 1024:
        return
    size = count * output.dtype.size
    if size >= _WORTH_SAYING:
        where = (str(line), op.name)
        _copies[where] = _copies.get(where, 0) + 1
        emit.fact("baked_constant", key=":".join(where), op=op.name, bytes=size, copies=_copies[where], shape=str(output.shape),
                  dtype=output.dtype.name, file=line.file, line=line.line, function=line.function)
