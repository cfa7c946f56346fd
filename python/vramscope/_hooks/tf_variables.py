"""Reports the addresses of TensorFlow's variables at selected times."""
from __future__ import annotations

import sys
import weakref
from types import ModuleType
from typing import Any, Dict, List, Optional, Set, Tuple

from .. import _address
from . import buffers, emit, holding, lines, tf_sessions, training
from .wrapping import wrap

_variables: List["weakref.ref[Any]"] = []
_lines: Dict[int, lines.Line] = {}              # id of a float64 variable -> where it was created
_LARGE = 1 << 16


def install(tf: ModuleType) -> None:
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import resource_variable_ops

    def made(token: None, ok: bool, result: Any, variable: Any, *_: Any, **__: Any) -> None:
        if ok and type(variable).__name__ != "_UnreadVariable":     # only a view of one, created by every assignment in a graph
            remember(variable)
            _note_float64(variable, lines.user_line(sys._getframe(1)))

    wrap(resource_variable_ops.BaseResourceVariable, "__init__", after=made)
    _watch_rows(resource_variable_ops.BaseResourceVariable, ops)
    training.tag_by_address = _tag_all
    training.tag_assigned = _tag_assigned
    watched = (ops.EagerTensor, resource_variable_ops.BaseResourceVariable)
    training.after_step = holding.Watch(holding.live_bytes, watched, _category_kept).after_step


_ROWS = ("sparse_read", "gather_nd", "scatter_sub", "scatter_add", "scatter_max", "scatter_min", "scatter_mul", "scatter_div", "scatter_update",
         "batch_scatter_update", "scatter_nd_sub", "scatter_nd_add", "scatter_nd_update", "scatter_nd_max", "scatter_nd_min")


def _watch_rows(variable_type: type, ops: Any) -> None:
    def begins(variable: Any, *_: Any, **__: Any) -> None:
        with ops.init_scope():          # outside all graphs
            _address.about_to_be_read_by_copy(variable)

    for name in _ROWS:
        wrap(variable_type, name, begins)


_by_handle: Dict[int, "weakref.ref[Any]"] = {}


def of_handle(handle: Any) -> Any:
    """The variable with this handle, an eager tensor; None if there is none."""
    reference = _by_handle.get(getattr(handle, "_id", -1))
    return None if reference is None else reference()


_CAPTURES = "_vramscope_captures"       # on a graph: id of a placeholder -> the key under which the graph has its capture


def _captured(graph: Any, inner: Any) -> Any:
    """What the graph has captured as `inner`, else `inner` itself. The graph of a model captures thousands of variables; between two assignments
    only the last of them are new. `graph.captures` makes a new list of all."""
    captures = getattr(graph, "_function_captures", None)
    if captures is None:                        # not that of a function
        return inner
    placeholders = captures.by_val_internal
    keys: Dict[int, int] = getattr(graph, _CAPTURES, {})
    for key in reversed(placeholders):
        if keys.get(id(placeholders[key])) == key:
            break
        keys[id(placeholders[key])] = key
    setattr(graph, _CAPTURES, keys)
    key = keys.get(id(inner), 0)
    return captures.by_val_external[key] if placeholders.get(key) is inner else inner


def _written_by(op: Any) -> Any:
    """The variable that an assignment op writes: its first input is the variable's handle, captured from graph to graph."""
    graph, handle = op.graph, op.inputs[0]
    while graph is not None:
        handle = _captured(graph, handle)
        if hasattr(handle, "_numpy"):           # an eager tensor: outside all graphs
            return of_handle(handle)
        graph = getattr(graph, "outer_graph", None)
    return None


# Op, the op that computes the value, variable; since tracing started.
_assignments: List[Tuple[str, Optional[str], "weakref.ref[Any]"]] = []


def made_assignment(op: Any) -> None:
    """A graph op that writes a variable. If the old value is still being read, it writes to a new block, which then belongs to
    the variable."""
    if not op.graph.building_function:
        tf_sessions.made_assignment(op)
        return
    variable = _written_by(op)
    if variable is not None:
        # An assignment takes over the block of the value; the other ops modify the existing block.
        value = buffers.maker(op.inputs[1].op).name if op.type == "AssignVariableOp" else None
        _assignments.append((op.name, value, weakref.ref(variable)))


def traced() -> None:
    """Tracing has ended: only now is the owner of every variable known."""
    if not _assignments:
        return
    meanings = training.describe_variables()
    for op, value, reference in _assignments:
        variable = reference()
        if variable is None:
            continue
        meaning = meanings.get(id(variable))
        category = meaning.category if meaning is not None else _category(variable)
        name = meaning.name if meaning is not None else variable.name.split(":")[0]
        emit.variable_op(op, "storage", category, name)
        if value is not None:
            emit.variable_op(value, "value", category, name)
    _assignments.clear()


def _category_kept(thing: Any) -> str:
    """Category of a tensor or a variable in a container that grows."""
    if not hasattr(thing, "handle"):
        return "unknown"
    meaning = training.meaning_of(thing)
    return meaning.category if meaning is not None else _category(thing)


def _category(variable: Any) -> str:
    """Category of a variable without an owner."""
    return "parameter" if variable.trainable else "buffer"


def remember(variable: Any) -> None:
    _variables.append(weakref.ref(variable))
    handle = getattr(variable, "handle", None)
    if hasattr(handle, "_numpy"):
        number = handle._id
        _by_handle[number] = weakref.ref(variable, lambda _: _by_handle.pop(number, None))
    training.variable_made()


def _note_float64(variable: Any, line: Optional[lines.Line]) -> None:
    if variable.dtype.name == "float64" and line is not None:
        _lines[id(variable)] = line
        weakref.finalize(variable, _lines.pop, id(variable), None)


def known() -> Set[int]:
    return {id(reference()) for reference in _variables}


_assigned: Dict[int, "weakref.ref[Any]"] = {}       # by id; since the last tags


def assigned(variable: Any) -> None:
    """Eager mode: a variable takes over the block of its new value. Blocks made of arrays have no op that would tell."""
    _assigned[id(variable)] = weakref.ref(variable)
    training.variable_assigned()


def _tag_assigned() -> None:
    variables = [reference() for reference in _assigned.values()]
    _assigned.clear()
    for variable in variables:
        if variable is not None:
            emit.quietly(lambda v=variable: _tag(v, training.meaning_of(v)))  # type: ignore[misc]


def _tag_all(meanings: Dict[int, Any]) -> None:
    if training.is_tracing():
        return
    _assigned.clear()
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
        return                                  # not initialized yet, or a type without an address
    if size == 0:
        return
    if id(variable) in _lines and size >= _LARGE:
        line = _lines[id(variable)]
        emit.report("float64_variable", name=meaning.name if meaning else variable.name.split(":")[0], bytes=size, file=line.file,
                    line=line.line)
    if meaning is not None:
        emit.tag(address, size, meaning.category, meaning.name, meaning.layer)
    else:
        emit.tag(address, size, _category(variable), variable.name.split(":")[0], None)
