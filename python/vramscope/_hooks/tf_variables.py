"""Where TensorFlow's variables lie: told by address, through DLPack, at chosen moments."""
from __future__ import annotations

import sys
import weakref
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .. import _address
from . import buffers, emit, holding, lines, training
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
            if type(self).__name__ == "_UnreadVariable":        # only a view of one, made by every assignment in a graph
                return
            remember(self)
            emit.quietly(lambda: _note_float64(self, lines.user_line(sys._getframe(2))))
        return init

    wrap(resource_variable_ops.BaseResourceVariable, "__init__", make)
    training.tag_by_address = _tag_all
    training.after_step = holding.Watch(holding.live_bytes, ops.EagerTensor).after_step


_by_handle: Dict[int, "weakref.ref[Any]"] = {}


def _written_by(op: Any) -> Any:
    """The variable that an assignment op writes: its first input is the variable's handle, captured by one graph around another."""
    graph, handle = op.graph, op.inputs[0]
    while graph is not None:
        for outer, inner in getattr(graph, "captures", ()):
            if inner is handle:
                handle = outer
                break
        if hasattr(handle, "_numpy"):           # an eager tensor: outside of all graphs
            reference = _by_handle.get(handle._id)
            return None if reference is None else reference()
        graph = getattr(graph, "outer_graph", None)
    return None


_assignments: List[Tuple[str, Optional[str], Any]] = []      # op, the op that makes the value, variable; since tracing began


def made_assignment(op: Any) -> None:
    """A graph op that writes a variable. Where the old value is still being read, it writes to a new block: that block is the variable."""
    variable = _written_by(op)
    if variable is not None:
        # An assignment takes over the block of the value; the other ones add to what is there.
        value = buffers.maker(op.inputs[1].op).name if op.type == "AssignVariableOp" else None
        _assignments.append((op.name, value, variable))


def traced() -> None:
    """Tracing has ended: only now is it known of every variable whose it is."""
    if not _assignments:
        return
    meanings = training.describe_variables()
    for op, value, variable in _assignments:
        meaning = meanings.get(id(variable))
        category = meaning.category if meaning is not None else _category(variable)
        said = f"{category} {meaning.name if meaning is not None else variable.name.split(':')[0]}"
        emit.setting(f"variable_op.{op}", said)
        if value is not None:
            emit.setting(f"variable_value.{value}", said)
    _assignments.clear()


def _category(variable: Any) -> str:
    """Of a variable that is nobody's."""
    return "parameter" if variable.trainable else "buffer"


def remember(variable: Any) -> None:
    _variables.append(weakref.ref(variable))
    handle = getattr(variable, "handle", None)
    if hasattr(handle, "_numpy"):
        _by_handle[handle._id] = _variables[-1]
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
        emit.tag(address, size, _category(variable), variable.name.split(":")[0], None)
