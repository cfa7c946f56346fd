"""Where the values of a program come from and go to, by the operations that JAX has lowered it to. Their locations have the names of the
passes: "jit(step)/jvp(net)/dot_general" is computed for a gradient, "jit(step)/transpose(jvp(net))/dot_general" is part of one."""
from __future__ import annotations

from typing import Any, Iterator, List, Tuple

_MOST = 4096            # operations that one question looks at
# What these return is still the value that they were given.
_CARRIERS = frozenset(("stablehlo.reshape", "stablehlo.convert", "stablehlo.transpose", "stablehlo.slice", "stablehlo.optimization_barrier",
                       "stablehlo.custom_call", "sdy.sharding_constraint"))


def _text(attribute: Any) -> str:
    return str(getattr(attribute, "value", attribute)).strip('"@')


class Flow:
    def __init__(self, module: Any, main: Any) -> None:
        self._functions = {_text(op.attributes["sym_name"]): op for op in module.body.operations if "sym_name" in op.attributes}
        self._arguments = list(main.entry_block.arguments)
        self._results = _returned(main)

    def is_updated(self, argument: int) -> bool:
        """Whether it is used beside the loss and its gradient, as in `p - 0.1 * g`. Otherwise results that look like it are its gradients,
        and the caller still needs it."""
        return any(_hands_on(op, operand) for op, operand in self._uses(self._arguments[argument]))

    def is_differentiated(self, argument: int) -> bool:
        """Whether the loss is computed from it."""
        values, seen = [self._arguments[argument]], 0
        while values and seen < _MOST:
            for op, operand in self._uses(values.pop()):
                seen += 1
                if "jvp(" in str(op.location):
                    return True
                values += [block.arguments[operand] for region in op.regions for block in list(region.blocks)[:1]
                           if len(block.arguments) == len(op.operands)]
                values += list(op.results) if op.name in _CARRIERS else []
        return False

    def is_gradient(self, result: int) -> bool:
        """Whether the backward pass itself returns it."""
        value = self._results[result]
        while True:
            op, number = _origin(value)
            called = None if op is None else self._called(op)
            if called is None:
                return op is not None and "transpose(" in str(op.location)
            value = _returned(called)[number]

    def needs_gradient(self, result: int) -> bool:
        """Whether it is computed from gradients: the next state is, what the network predicts is not."""
        values, seen, known = [self._results[result]], 0, set()
        while values and seen < _MOST:
            op, number = _origin(values.pop(0))
            if op is None or (op, number) in known:
                continue
            known.add((op, number))
            seen += 1
            if "transpose(" in str(op.location):
                return True
            called = self._called(op)
            values += [*op.operands, *(_returned(called)[number:number + 1] if called is not None else ())]
            values += [inner for region in op.regions for block in list(region.blocks)[-1:] for inner in _of_block(block, number, len(op.results))]
        return False

    def _uses(self, value: Any) -> Iterator[Tuple[Any, int]]:
        """Also in functions that are called with it, unless the call itself is for a gradient."""
        values = [value]
        while values:
            for use in values.pop().uses:
                op = use.owner.operation
                called = self._called(op) if "jvp(" not in str(op.location) else None
                if called is None:
                    yield op, use.operand_number
                else:
                    values.append(called.entry_block.arguments[use.operand_number])

    def _called(self, op: Any) -> Any:
        """Unless the call itself is part of the backward pass."""
        if op.name != "func.call" or "transpose(" in str(op.location):
            return None
        return self._functions.get(_text(op.attributes["callee"]))


def _origin(value: Any) -> Tuple[Any, int]:
    """The operation that computes it, and the number of its result; (None, 0) for an argument."""
    op = getattr(value.owner, "operation", None)
    return (None, 0) if op is None else (op, next(index for index, result in enumerate(op.results) if result == value))


def _hands_on(op: Any, operand: int) -> bool:
    if op.name == "stablehlo.while":        # of what a loop only reads, nothing is used afterwards
        return any(True for _ in op.results[operand].uses)
    return "jvp(" not in str(op.location)


def _returned(function: Any) -> List[Any]:
    return list(list(function.entry_block.operations)[-1].operands)


def _of_block(block: Any, number: int, results: int) -> List[Any]:
    """What the last operation of a region hands on as this result of the operation around it."""
    operands = list(list(block.operations)[-1].operands)
    return [operands[number]] if len(operands) == results else operands
