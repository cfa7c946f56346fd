"""What the arguments of a compiled program are: parameters, optimizer state or batch, by their paths ("params['dense']['kernel']").

An argument that comes back as a result of the same path and type is state that a step hands on to the next; others are inputs. Of the
state, the optimizer's mirrors the parameters: the same path again below one of its own.
"""
from __future__ import annotations

import enum
import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

# "['dense']", ".params", "[0]"
_PART = re.compile(r"\['([^']*)'\]|\[\"([^\"]*)\"\]|\.(\w+)|\[(\d+)\]")
# What a part of a path says. The first part that says something decides: params['mu']['kernel'] is a layer called mu.
_ROLES = (
    ("optimizer_state", re.compile(r"\b(opt|optim|optimizer|mu|nu|momentum|velocity|slots?|ema|trace|adam\w*|tx)\b|opt_?state|optimizer", re.IGNORECASE)),
    ("gradient", re.compile(r"(?<![a-z])(grads?|gradients?)(?![a-z])", re.IGNORECASE)),
    ("parameter", re.compile(r"(?<![a-z])(params?|parameters?)(?![a-z])|\b(weights?|variables|theta)\b", re.IGNORECASE)),
    ("buffer", re.compile(r"batch_?stats|(mean|var)_ema|(moving|running)_(mean|avg|var)|\brngs?\b|\bkeys?\b|\bprng\w*|non_trainable|\bstep\b|\bcount\b",
                          re.IGNORECASE)),
)
_SAMPLE_WEIGHTS = re.compile(r"weights?", re.IGNORECASE)
# Parts at the start of a path that are containers of layers, not layers.
_CONTAINERS = re.compile(r"^(\w*params?|parameters?|variables|batch_stats|state|model)$")


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


def _role_of(path: str) -> Optional[str]:
    return next((role for part in parts_of(path) for role, pattern in _ROLES if pattern.search(part)), None)


def _inside(path: str) -> Tuple[str, ...]:
    """The parts below the root and the containers: ("encoder", "dense_0", "kernel") for state.params['params']['encoder']['dense_0']['kernel']."""
    parts = parts_of(re.sub(r"\.(raw_)?value$", "", path))
    while len(parts) > 1 and (_CONTAINERS.match(parts[1]) or _is_member_of_tuple(parts)):
        parts = [parts[0], *parts[2:]]
    return tuple(parts[1:])


def _is_member_of_tuple(parts: Sequence[str]) -> bool:
    """state[0]['dense']['kernel']; but params[0]['kernel'] is in the first of a list of layers."""
    return parts[1].isdigit() and len(parts) > 3 and not all(part.isdigit() for part in parts[1:]) and _role_of(parts[0]) != "parameter"


def layer_of(path: str) -> Optional[str]:
    """The layer that a parameter belongs to: "encoder/dense_0" for params['params']['encoder']['dense_0']['kernel'], "params/0" for params[0][1]."""
    parts = _inside(path)
    root = parts_of(path)[:1] if parts and parts[0].isdigit() and len(parts) > 1 else []
    return "/".join([*root, *(parts[:-1] or parts)]) or None


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


def updates_state(arguments: Sequence[Argument], results: Sequence[Argument]) -> bool:
    """Whether it is the part of a training step that applies gradients computed elsewhere."""
    roles = [_role_of(argument.path) for argument in arguments]
    handed = {role for role, stays in zip(roles, handed_on(arguments, results)) if stays}
    return "optimizer_state" in handed or ("parameter" in handed and "gradient" in roles)


class _Mirrored:
    """The layers of the parameters. The state of an optimizer has their paths below its own: opt_state[0].mu['encoder']['dense_0']['kernel']."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self._layers = {_inside(path): layer_of(path) for path in parameters}
        self._paths = set(parameters)

    def has(self, path: str) -> bool:
        return path not in self._paths and self._match(path) is not None

    def layer(self, path: str) -> Optional[str]:
        return self._layers.get(self._match(path) or ()) if self._layers else layer_of(path)

    def _match(self, path: str) -> Optional[Tuple[str, ...]]:
        """The longest end of the path that is a parameter."""
        parts = tuple(parts_of(path)[1:])
        return next((parts[start:] for start in range(len(parts)) if parts[start:] in self._layers), None)


def _is_batch(path: str, role: Optional[str], stays: bool) -> bool:
    """Weights of the examples in a batch, which nothing takes the place of, are not those of a network."""
    return not stays and role == "parameter" and bool(_SAMPLE_WEIGHTS.fullmatch(parts_of(path)[-1]))


def classify(arguments: Sequence[Argument], results: Sequence[Argument], donated: Sequence[Donation]) -> List[Label]:
    """What each argument of a program that trains or updates state is."""
    roles = [_role_of(argument.path) for argument in arguments]
    mirrored = _Mirrored([argument.path for argument, role in zip(arguments, roles) if role == "parameter"])
    return [_label(argument.path, role, stays, bool(gone), mirrored)
            for argument, role, stays, gone in zip(arguments, roles, handed_on(arguments, results), donated)]


def _label(path: str, role: Optional[str], stays: bool, donated: bool, mirrored: _Mirrored) -> Label:
    if (role is None and not stays and not donated) or _is_batch(path, role, stays):
        return Label("input", None)
    if role is None:
        if not any(re.match(r"[A-Za-z_]", part) for part in parts_of(path)[1:]):
            return Label("unknown", None)       # `state[2][5]`, as in Keras: its own hooks know the variables
        role = "optimizer_state" if mirrored.has(path) else "parameter"
    if role == "buffer":
        return Label(role, "/".join(_inside(path)[:-1]) or None)
    return Label(role, mirrored.layer(path) if role == "optimizer_state" else layer_of(path))
