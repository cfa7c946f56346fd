"""Variables of programs that run graphs in sessions, as TensorFlow 1 did.

Python cannot read the address of such a variable: its value lives in the session. But the graph shows which op writes it, and that op
allocates the variable's block or takes over the block of the value.
"""
from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any, Dict, Iterator, List, Set, Tuple

from . import buffers, emit, tf_building
from .wrapping import wrap

_new: List[Tuple["weakref.ref[Any]", str]] = []         # graph, op that writes a variable; since the last run of a session
_slots: "weakref.WeakKeyDictionary[Any, Set[str]]" = weakref.WeakKeyDictionary()       # graph -> variables of its optimizers

_COLLECTIONS = ("variables", "trainable_variables", "local_variables")


def install(tf: ModuleType) -> None:
    from tensorflow.python.client import session

    def runs(running: Any, *_: Any, **__: Any) -> None:
        tf_building.session_runs(running.graph)
        if _new:
            emit.quietly(_tell)

    wrap(session.BaseSession, "run", runs)


def made_assignment(op: Any) -> None:
    """Which variable it writes, and whether that belongs to an optimizer, is known once the graph is complete: when it runs."""
    _new.append((weakref.ref(op.graph), op.name))


def made_optimizer(optimizer: Any) -> None:
    """An optimizer of TensorFlow 1 has created the ops that apply gradients, and with them its variables."""
    for variable in optimizer.variables():
        if hasattr(variable, "op"):
            _slots.setdefault(variable.op.graph, set()).add(variable.op.name)


def _tell() -> None:
    todo, _new[:] = list(_new), []
    variables: Dict[int, Dict[str, Any]] = {}
    for reference, name in todo:
        graph = reference()
        if graph is None:
            continue
        if id(graph) not in variables:
            variables[id(graph)] = {variable.op.name: variable for collection in _COLLECTIONS for variable in graph.get_collection(collection)
                                    if hasattr(variable, "op")}
        assignment = graph.get_operation_by_name(name)
        variable = variables[id(graph)].get(_source(assignment.inputs[0]).name)
        if variable is not None:
            for op in (assignment, *_makers(assignment.inputs[1])):
                emit.variable_op(op.name, "storage", _category(graph, variable), variable.op.name)


def _source(tensor: Any) -> Any:
    """The op that created a variable, also if its handle passes through other ops first."""
    return buffers.maker(tensor.op)


def _makers(value: Any) -> Iterator[Any]:
    """The ops that may have allocated the variable's block: the one that computes the value, and those whose results it overwrites. The
    block of a constant still belongs to the graph; the assignment copies it."""
    op = buffers.maker(value.op)
    while not _is_constant(op) and len(op.outputs) == 1:
        yield op
        alike = [one for one in op.inputs if op.type in buffers.IN_PLACE and one.dtype == value.dtype and one.shape.is_compatible_with(value.shape)
                 and one.shape.rank == value.shape.rank]
        if not alike:
            return
        op = buffers.maker(alike[0].op)


def _is_constant(op: Any) -> bool:
    """Whether TensorFlow computes it once, before the graph runs: a constant, or an op that depends only on constants."""
    return op.type == "Const" or (bool(op.inputs) and not op.op_def.is_stateful and all(_is_constant(one.op) for one in op.inputs))


def _category(graph: Any, variable: Any) -> str:
    if variable.op.name in _slots.get(graph, ()):
        return "optimizer_state"
    return "parameter" if variable.trainable else "buffer"
