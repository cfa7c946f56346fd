"""What the arguments of a compiled program are: parameters, optimizer state or batch, by their paths ("params['dense']['kernel']").

An argument that comes back as a result of the same path and type is state that a step hands on to the next; others are inputs. Of the
state, the optimizer's mirrors the parameters: the same path again below one of its own.
"""
from __future__ import annotations

import enum
import re
from typing import Dict, List, NamedTuple, Optional, Sequence

# "['dense']", ".params", "[0]"
_PART = re.compile(r"\['([^']*)'\]|\[\"([^\"]*)\"\]|\.(\w+)|\[(\d+)\]")
_OPTIMIZER = re.compile(r"\b(opt|optim|optimizer|mu|nu|momentum|velocity|slots?|ema|trace|adam\w*|tx)\b|opt_?state|optimizer", re.IGNORECASE)
_PARAMETER = re.compile(r"\b(params?|parameters?|weights?|variables|theta)\b", re.IGNORECASE)
_GRADIENT = re.compile(r"\b(grads?|gradients?)\b", re.IGNORECASE)
_BUFFER = re.compile(r"batch_?stats|\brngs?\b|\bkeys?\b|\bprng\w*|non_trainable|\bstep\b|\bcount\b", re.IGNORECASE)
# Parts of a path that are containers of layers, not layers.
_NOT_LAYERS = re.compile(r"^(params?|parameters?|variables|state|model|value|raw_value|\d+)$")
_LEAVES = re.compile(r"^(kernel|bias|scale|embedding|weight|w|b|offset|value|gamma|beta)$")


class Argument(NamedTuple):
    path: str
    kind: str       # shape and type, "tensor<4x4xf32>"


class Donation(enum.IntEnum):
    """What becomes of an argument's memory, as JAX tells XLA. Those that are not NONE are true."""
    NONE = 0
    ALIASED = 1     # a certain result takes its place
    OFFERED = 2     # XLA may choose a result; JAX does so if the program is sharded


class Label(NamedTuple):
    category: str
    layer: Optional[str]


def parts_of(path: str) -> List[str]:
    """["params", "dense", "kernel"]"""
    root = re.match(r"\w*", path).group()  # type: ignore[union-attr]
    return [root] * bool(root) + [next(part for part in found if part) for found in _PART.findall(path)]


def _words(path: str) -> str:
    return " ".join(parts_of(path))


def layer_of(path: str) -> Optional[str]:
    """The layer that a parameter belongs to: "encoder/dense_0" for params['params']['encoder']['dense_0']['kernel']."""
    parts = parts_of(path)[1:]
    if len(parts) > 1 and _LEAVES.match(parts[-1]):
        parts = parts[:-1]
    return "/".join(part for part in parts if not _NOT_LAYERS.match(part) and not _OPTIMIZER.fullmatch(part)) or None


def below_root(path: str) -> str:
    """The path below the place of an argument or of a result: "params['w']" and "result[0]['w']" -> "['w']"."""
    return path[re.match(r"\w*(\[\d+\])?", path).end():]  # type: ignore[union-attr]


def handed_on(arguments: Sequence[Argument], results: Sequence[Argument]) -> List[bool]:
    """For each argument, whether a result takes its place. Each result takes that of one argument."""
    left: Dict[Argument, int] = {}
    for result in results:
        key = Argument(below_root(result.path), result.kind)
        left[key] = left.get(key, 0) + 1
    out = []
    for argument in arguments:
        # The first argument of a function may itself be a tuple or a list: `state[0]['w']`.
        keys = {Argument(below_root(argument.path), argument.kind), Argument(argument.path[len(re.match(r"\w*", argument.path).group()):], argument.kind)}  # type: ignore[union-attr]
        found = next((key for key in keys if left.get(key)), None)
        if found is not None:
            left[found] -= 1
        out.append(found is not None)
    return out


def _mirrors(path: str, parameters: Sequence[str]) -> bool:
    return any(path != parameter and path.endswith(below_root(parameter)) and below_root(parameter) for parameter in parameters)


def updates_state(arguments: Sequence[Argument], results: Sequence[Argument]) -> bool:
    """Whether it is the part of a training step that applies gradients computed elsewhere."""
    return any(stays and _OPTIMIZER.search(_words(argument.path)) for argument, stays in zip(arguments, handed_on(arguments, results)))


def classify(arguments: Sequence[Argument], results: Sequence[Argument], donated: Sequence[Donation]) -> List[Label]:
    """What each argument of a program that trains or updates state is."""
    stays_on = handed_on(arguments, results)
    named = [argument.path for argument in arguments if _PARAMETER.search(_words(argument.path)) and not _OPTIMIZER.search(_words(argument.path))]
    out = []
    for argument, stays, gone in zip(arguments, stays_on, donated):
        words, layer = _words(argument.path), layer_of(argument.path)
        if _OPTIMIZER.search(words):
            out.append(Label("optimizer_state", layer))
        elif _GRADIENT.search(words):
            out.append(Label("gradient", layer))
        elif _PARAMETER.search(words):
            out.append(Label("parameter", layer))
        elif _BUFFER.search(words):
            out.append(Label("buffer", None))
        elif not stays and not gone:
            out.append(Label("input", None))
        elif not any(re.match(r"[A-Za-z_]", part) for part in parts_of(argument.path)[1:]):
            out.append(Label("unknown", None))      # `state[2][5]`, as in Keras: its own hooks know the variables
        else:
            out.append(Label("optimizer_state" if _mirrors(argument.path, named) else "parameter", layer))
    return out
