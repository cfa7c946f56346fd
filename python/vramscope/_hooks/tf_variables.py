"""Where TensorFlow's variables lie: told by address, through DLPack, at chosen moments."""
from __future__ import annotations

import sys
import weakref
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Set

from .. import _address
from . import emit, holding, lines, training
from .wrapping import wrap

_variables: List["weakref.ref[Any]"] = []
_lines: Dict[int, lines.Line] = {}              # id of a float64 variable -> where it was made
_LARGE = 1 << 16


def install(tf: ModuleType) -> None:
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import resource_variable_ops

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            remember(self)
            emit.quietly(lambda: _note_float64(self, lines.user_line(sys._getframe(2))))
        return init

    wrap(resource_variable_ops.BaseResourceVariable, "__init__", make)
    training.tag_by_address = _tag_all
    training.after_step = holding.Watch(holding.live_bytes, ops.EagerTensor).after_step


def remember(variable: Any) -> None:
    _variables.append(weakref.ref(variable))
    training.variable_made()


def _note_float64(variable: Any, line: Optional[lines.Line]) -> None:
    if variable.dtype.name == "float64" and line is not None:
        _lines[id(variable)] = line
        weakref.finalize(variable, _lines.pop, id(variable), None)


def known() -> Set[int]:
    return {id(reference()) for reference in _variables}


def _tag_all(meanings: Dict[int, Any]) -> None:
    if training.is_tracing():
        return
    alive = [(reference, reference()) for reference in _variables]
    _variables[:] = [reference for reference, variable in alive if variable is not None]
    for _, variable in alive:
        if variable is not None:
            emit.quietly(lambda v=variable: _tag(v, meanings.get(id(v))))  # type: ignore[misc]


def _tag(variable: Any, meaning: Any) -> None:
    if not variable.dtype.is_floating and not variable.dtype.is_integer and not variable.dtype.is_complex:
        return
    try:
        address, size = _address.of(variable)
    except TypeError:
        return                                  # not initialised yet, or a type without an address
    if size == 0:
        return
    if id(variable) in _lines and size >= _LARGE:
        line = _lines[id(variable)]
        emit.fact("float64", key=f"{line}", name=meaning.name if meaning else variable.name.split(":")[0], bytes=size, file=line.file,
                  line=line.line)
    if meaning is not None:
        emit.tag(address, size, meaning.category, meaning.name, meaning.layer)
    else:
        emit.tag(address, size, "parameter" if variable.trainable else "buffer", variable.name.split(":")[0], None)
