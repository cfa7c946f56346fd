"""Constants baked into a graph: every trace of the function has its own copy, and the device gets another one. Arrays of float64 that
become tensors."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Dict, Tuple

from . import emit, lines
from .wrapping import around, is_wrapped

_WORTH_SAYING = 1 << 20
_WIDE_WORTH_SAYING = 64 << 10
_MOST_CONSTANTS = 2000          # data enters early; later, a loop pays nothing for it
_OF_GRADIENTS = ("gradients/", "gradient_tape/", "_grad/")     # TensorFlow's own: zeros that the gradient of a loop starts from
_copies: Dict[Tuple[str, str], int] = {}        # (line, op) -> graphs that contain it


def made(op: Any, line: lines.Line) -> None:
    name = op.name
    if "grad" in name and any(scope in name for scope in _OF_GRADIENTS):
        return
    output = op.outputs[0]
    count = output.shape.num_elements()
    if not count or count < 1024:
        return
    size = count * output.dtype.size
    if size >= _WORTH_SAYING:
        where = (str(line), name)
        _copies[where] = _copies.get(where, 0) + 1
        emit.report("baked_constant", op=name, bytes=size, copies=_copies[where], shape=output.shape, dtype=output.dtype.name,
                    file=line.file, line=line.line, function=line.function)


_wide: Dict[str, int] = {}                      # line -> bytes, as reported


def install(tf: ModuleType) -> None:
    """Watches the first constants outside graphs, then takes itself out."""
    from tensorflow.python.framework import constant_op
    original = getattr(constant_op, "_constant_eager_impl", None)
    if original is None or is_wrapped(original):
        return
    seen = 0

    def created(token: None, ok: bool, tensor: Any, context: Any, value: Any, *_: Any, **__: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == _MOST_CONSTANTS and constant_op._constant_eager_impl is watched:
            constant_op._constant_eager_impl = original
        if ok and getattr(value, "nbytes", 0) >= _WIDE_WORTH_SAYING and tensor.dtype.name == "float64":
            _float64_enters(value.nbytes, lines.user_line(sys._getframe(1)))

    constant_op._constant_eager_impl = watched = around(original, after=created)


def _float64_enters(size: int, line: Any) -> None:
    if line is not None and size > _wide.get(str(line), 0):
        _wide[str(line)] = size
        emit.report("float64_enters", file=line.file, line=line.line, bytes=size)
