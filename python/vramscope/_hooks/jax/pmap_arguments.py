"""jax.pmap hands JAX the values of all arguments as one list, `flat_args[3]`. Their paths are those of the arguments of the call."""
from __future__ import annotations

import inspect
import re
import sys
from typing import Any, Callable, List

from . import frames
from .arguments import Argument

_PLACE = re.compile(r"flat_args\[(\d+)\]$")


def apply(arguments: List[Argument]) -> None:
    if not any(_PLACE.match(argument.path) for argument in arguments):
        return
    paths = _paths()
    for index, argument in enumerate(arguments):
        place = _PLACE.match(argument.path)
        if place is not None and int(place.group(1)) < len(paths):
            arguments[index] = Argument(paths[int(place.group(1))], argument.kind)


def _paths() -> List[str]:
    found = frames.variables("jax/_src/pmap.py", "args", "kwargs", "dyn_args_flat", "infer_params")
    if not found:
        return []
    tree = sys.modules["jax"].tree_util
    leaves = tree.tree_flatten_with_path((found["args"], found["kwargs"]))[0]
    if len(leaves) != len(found["dyn_args_flat"]):      # static arguments are not among the values
        return []
    names = _names(found["infer_params"])
    return [_path(tree, path, names) for path, _ in leaves]


def _path(tree: Any, path: Any, names: List[str]) -> str:
    """The path in (args, kwargs) -> "params['dense']['kernel']"."""
    in_keywords, first = path[0].idx == 1, path[1]
    root = first.key if in_keywords else names[first.idx] if first.idx < len(names) else f"args[{first.idx}]"
    return f"{root}{tree.keystr(path[2:])}"


def _names(infer_params: Callable[..., Any]) -> List[str]:
    """Of the parameters of the function that was mapped, which the wrapper of JAX closes over."""
    cells = dict(zip(infer_params.__code__.co_freevars, infer_params.__closure__ or ()))
    try:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [name for name, one in inspect.signature(cells["wrapped_fun"].cell_contents.f).parameters.items() if one.kind in kinds]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []
