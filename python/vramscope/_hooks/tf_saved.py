"""Activations, from the structure of a graph: what its forward ops make and its backward ops read.

Looked at once, when a tape has differentiated what is being traced. When a block is freed says less: an executor starts backward ops as soon as
their inputs are there, and keeps forward results that nobody waits for.
"""
from __future__ import annotations

from typing import Any, Iterable, List, Set

from . import buffers, emit

# Read the shape of their input, not what is in it.
_SHAPE_ONLY = frozenset(("Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"))
LIST = "TensorListPushBack"    # how a loop of a graph keeps what each of its rounds made

_differentiating = 0


def begins(graph: Any) -> int:
    """A tape differentiates what this graph holds; what to give to `ended`."""
    global _differentiating
    _differentiating += 1
    return len(graph.get_operations())


def ended(graph: Any, before: int) -> None:
    global _differentiating
    _differentiating -= 1
    made: List[Any] = graph.get_operations()
    forward = set(made[:before])
    _report(tensor for op in made[before:] if op.type not in _SHAPE_ONLY for tensor in op.inputs if tensor.op in forward)


def list_made(op: Any) -> None:
    """An op of type LIST: differentiating a loop adds them to its body, to keep what the rounds made."""
    if _differentiating:
        _report([op.inputs[1], *_from_round_before(op.graph, op.inputs[1])])


def _from_round_before(body: Any, tensor: Any) -> List[Any]:
    """What a round of a loop is given, the one before it has made."""
    for given, made in zip(body.inputs, body.outputs):
        if given is tensor:
            return [made]
    return []


def _report(saved: Iterable[Any]) -> None:
    seen: Set[str] = set()
    waiting = list(saved)
    while waiting:
        op = buffers.maker(waiting.pop().op)
        if op.name in seen:
            continue
        seen.add(op.name)
        emit.variable_op(op.name, "saved", "activation", "")
        if op.type in buffers.IN_PLACE:
            waiting += [tensor for tensor in op.inputs if any(_takes_over(tensor, result) for result in op.outputs)]


def _takes_over(tensor: Any, result: Any) -> bool:
    return tensor.dtype == result.dtype and tensor.shape.is_compatible_with(result.shape)
