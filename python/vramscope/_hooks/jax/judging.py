"""What a compiled program says about memory: state that is not donated, donations that failed, copies on several devices, XLA's plan."""
from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..._schema import CATEGORIES
from .. import emit
from ..lines import Line
from .arguments import Argument, Donation, Label, below_root, handed_on, parts_of
from .lowering import Lowered

_SMALLEST = 64 << 10        # bytes that are worth a report
_MOST_NAMED = 4


class Program(NamedTuple):
    arguments: List[Argument]
    labels: List[Label]     # empty if it neither trains nor updates state
    results: List[Argument]
    donated: List[Donation]
    updated: List[bool]     # used beside the loss and its gradient
    lowered: Lowered


def readable(kind: str) -> str:
    """tensor<8x4xf32> -> f32[8,4], as JAX writes it."""
    def short(match: "re.Match[str]") -> str:
        *shape, dtype = match.group(1).split("x")
        return f"{dtype}[{','.join(shape)}]"

    return re.sub(r"tensor<([^<>]*)>", short, kind)


def function_of(name: str) -> str:
    return re.sub(r"^p?jit_", "", name).strip("_")


def judge(name: str, place: Optional[Line], program: Optional[Program], executable: Any) -> None:
    """`name` is the program's, "jit_train_step"; `place` the line that had it compiled."""
    try:
        plan = executable.get_compiled_memory_stats()
    except Exception:       # a plugin that does not know
        plan = None
    if plan is not None:
        _report_plan(name, place, plan)
    if place is None or program is None:
        return
    where = {"function": function_of(name), "file": place.file, "line": place.line}
    _state_that_is_not_donated(program, where)
    _failed_donations(program, None if plan is None else plan.alias_size_in_bytes, where)
    _replicated(program, where)


def _largest_first(program: Program, chosen: Sequence[int]) -> List[int]:
    return sorted(chosen, key=lambda index: -program.lowered.bytes[index])


def _named(program: Program, chosen: Sequence[int]) -> str:
    paths = [program.arguments[index].path or f"argument {index}" for index in _largest_first(program, chosen)]
    return ", ".join(paths[:_MOST_NAMED]) + (f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else "")


def _sum(program: Program, chosen: Sequence[int]) -> int:
    return sum(program.lowered.bytes[index] for index in chosen)


def _state_that_is_not_donated(program: Program, where: Dict[str, Any]) -> None:
    if not program.labels:
        return
    stays = handed_on(program.arguments, program.results)
    # A result that looks like a parameter may be its gradient.
    chosen = [index for index, label in enumerate(program.labels)
              if stays[index] and not program.lowered.donated[index] and (program.updated[index] or label.category != "parameter")]
    if _sum(program, chosen) < _SMALLEST:
        return
    roots = list(dict.fromkeys(parts_of(program.arguments[index].path)[0] for index in chosen if parts_of(program.arguments[index].path)))
    emit.report("state_not_donated", **where, arguments=" ".join(roots), bytes=_sum(program, chosen))


def _without_taker(program: Program) -> List[int]:
    """Arguments that were offered to XLA although no result of their type is left."""
    left = Counter(result.kind for result in program.results)
    left.subtract(argument.kind for argument, how in zip(program.arguments, program.donated) if how == Donation.ALIASED)
    out = []
    for index, how in enumerate(program.donated):
        if how == Donation.OFFERED:
            left[program.arguments[index].kind] -= 1
            if left[program.arguments[index].kind] < 0:
                out.append(index)
    return out


def _failed_donations(program: Program, aliased: Optional[int], where: Dict[str, Any]) -> None:
    chosen = [index for index, asked in enumerate(program.lowered.donated) if asked and not program.donated[index]]
    expected = _sum(program, [index for index, how in enumerate(program.donated) if how])
    if aliased is not None and aliased + _SMALLEST <= expected:
        chosen += _without_taker(program)
    if _sum(program, chosen) < _SMALLEST:
        return
    emit.report("donation_failed", **where, arguments=_named(program, chosen), reason=_why(program, _largest_first(program, chosen)[0])[:300],
                bytes=_sum(program, chosen))


def _why(program: Program, index: int) -> str:
    argument = program.arguments[index]
    below = below_root(argument.path)
    # Results of the same path, less those that take the place of other arguments: params['w'] and momentum['w'] have two.
    others = Counter(other.kind for i, other in enumerate(program.arguments) if i != index and program.donated[i] and below_root(other.path) == below)
    twins = []
    for result in program.results:
        if below and below_root(result.path) == below:
            if others[result.kind] > 0:
                others[result.kind] -= 1
            else:
                twins.append(result)
    if twins and all(twin.kind != argument.kind for twin in twins):
        return f"{argument.path} is {readable(argument.kind)}, but the result in its place is {readable(twins[0].kind)}"
    same = sum(result.kind == argument.kind for result in program.results)
    if same:
        return f"{argument.path} is {readable(argument.kind)}; other donated arguments take the place of {'the only result' if same == 1 else f'the {same} results'} of this type"
    return f"no result is {readable(argument.kind)}, as {argument.path or 'the argument'} is"


def _replicated(program: Program, where: Dict[str, Any]) -> None:
    for category in ("parameter", "optimizer_state", "input"):
        of_category = [index for index, label in enumerate(program.labels) if label.category == category]
        # The most copies: what is divided along one axis of a mesh and copied along another has fewer, and counts as sharded.
        copies = max((program.lowered.copies[index] for index in of_category if program.lowered.bytes[index] >= _SMALLEST), default=1)
        chosen = [index for index in of_category if program.lowered.copies[index] == copies > 1]
        if _sum(program, chosen) >= _SMALLEST:
            emit.report("replicated_arguments", **where, arguments=_named(program, chosen), category=CATEGORIES[category],
                        bytes=_sum(program, chosen), copies=copies,
                        sharded=_sum(program, of_category) - _sum(program, chosen))


def _report_plan(name: str, place: Optional[Line], plan: Any) -> None:
    """Programs that take little are not worth a line in the trace."""
    sizes = {"arguments": plan.argument_size_in_bytes, "outputs": plan.output_size_in_bytes, "aliased": plan.alias_size_in_bytes,
             "temporaries": plan.temp_size_in_bytes}
    if sum(sizes.values()) >= 16 * _SMALLEST:
        emit.report("program_plan", function=name, file=place.file if place else "", line=place.line if place else 0, **sizes)
