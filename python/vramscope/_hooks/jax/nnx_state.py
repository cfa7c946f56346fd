"""flax.nnx: its functions hand JAX the values of a module as one list, `model.states[0][3]`. Which variable that is, the module knows, and
it is an argument of the frame of nnx that has the function compiled."""
from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import frames
from .arguments import Argument, Label

_PLACE = re.compile(r"(.*)\.states\[0\]\[(\d+)\]$")
_RESULT = re.compile(r"result\[0\]\[(\d+)\]$")       # what nnx returns beside the function's own results: its arguments as they are now
# By the names of the classes of variables: those of nnx, and those that derive from them.
_CATEGORIES = {"Param": "parameter", "OptState": "optimizer_state", "OptVariable": "optimizer_state", "OptArray": "optimizer_state"}
_Path = Tuple[Any, ...]


class _Variable(NamedTuple):
    path: str                   # ".layers[0].kernel"
    label: Label


def apply(arguments: List[Argument], results: List[Argument]) -> Dict[str, Label]:
    """Replaces the places by paths, "model.layers[0].kernel", and returns what these are."""
    if not any(_PLACE.match(argument.path) for argument in arguments):
        return {}
    modules = _modules()
    taken = _roots(arguments, modules)
    labels = {}
    for index, argument in enumerate(arguments):
        root, variable = _variable(argument.path, taken, modules)
        if variable is not None:
            labels[root + variable.path] = variable.label
            arguments[index] = Argument(root + variable.path, argument.kind)
    for index, result in enumerate(results):
        root, variable = _variable(result.path, {root: int(place.group(1)) for root, place in _returned(results)}, modules)
        if variable is not None:
            results[index] = Argument("result" + variable.path, result.kind)
    return labels


def _returned(results: Sequence[Argument]) -> "Iterator[Tuple[str, re.Match[str]]]":
    for result in results:
        place = _PLACE.match(result.path)
        found = place and _RESULT.match(place.group(1))
        if place and found:
            yield place.group(1), found


def _variable(path: str, roots: Dict[str, int], modules: Dict[int, List[_Variable]]) -> Tuple[str, Optional[_Variable]]:
    place = _PLACE.match(path)
    if place is None or place.group(1) not in roots:
        return "", None
    variables, number = modules.get(roots[place.group(1)], []), int(place.group(2))
    return place.group(1), variables[number] if number < len(variables) else None


def _roots(arguments: Sequence[Argument], modules: Dict[int, List[_Variable]]) -> Dict[str, int]:
    """The number of the module that each root is. Both are in the order of the arguments; one of which no value is used has no root."""
    needed: Dict[str, int] = {}
    for argument in arguments:
        place = _PLACE.match(argument.path)
        if place is not None:
            needed[place.group(1)] = max(needed.get(place.group(1), 0), int(place.group(2)) + 1)
    found, left = {}, list(modules)
    for root, count in needed.items():
        while left and len(modules[left[0]]) < count:
            left.pop(0)
        if not left:
            return {}
        found[root] = left.pop(0)
    return found


def _modules() -> Dict[int, List[_Variable]]:
    """The variables of each module among the arguments, by its number among them, in the order of its values."""
    from flax import nnx
    out, parameters = {}, {}        # type: Dict[int, List[_Variable]], Dict[_Path, str]
    with nnx.split_context() as context:        # what two modules share belongs to the first
        for number, value in enumerate(_values()):
            if nnx.graph.is_graph_node(value):
                state = context.flatten(value)[1]
                out[number] = [_described(path, variable, parameters) for path, variable in zip(state.paths, state.leaves)]
    return out


def _values() -> List[Any]:
    found = frames.variables("flax/nnx/", "args", "pure_args")
    return [*found.get("args", ()), *found.get("kwargs", {}).values()]


def _described(path: _Path, variable: Any, parameters: Dict[_Path, str]) -> _Variable:
    category = next((_CATEGORIES[one.__name__] for one in type(variable).__mro__ if one.__name__ in _CATEGORIES), "buffer")
    layer: Optional[str] = "/".join(str(part) for part in path[:-1]) or None
    if category == "parameter":
        parameters[path] = layer or ""
    elif category == "optimizer_state":     # it has the paths of the parameters below its own
        layer = next((parameters[path[start:]] for start in range(len(path)) if path[start:] in parameters), None)
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return _Variable(text, Label(category, layer or None))
