"""What the arguments of a compiled program are: parameters, optimizer state or batch, by their paths ("params['dense']['kernel']").

An argument that comes back as a result of the same path and type is state that a step hands on to the next; others are inputs. Of the
state, the optimizer's mirrors the parameters: the same path again below one of its own. Where paths do not tell, the operations of a
program that trains do: the loss is computed from the parameters, and the next state from gradients.
"""
from __future__ import annotations

import enum
import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from .dataflow import Flow

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
_COMPARED = re.compile(r"(?<![a-z])(target|teacher|reference|ref|frozen|old)(?![a-z])", re.IGNORECASE)
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
    """The layer that a parameter belongs to: "encoder/dense_0" for params['params']['encoder']['dense_0']['kernel'], "params/0" for params[0][1] and params[0]."""
    parts = _inside(path)
    root = parts_of(path)[:1] if parts and parts[0].isdigit() else []
    return "/".join([*root, *(parts[:-1] or parts)]) or None


def below_root(path: str) -> str:
    """The path below the place of an argument or of a result: "params['w']" and "result[0]['w']" -> "['w']"."""
    return path[re.match(r"\w*(\[\d+\])?", path).end():]  # type: ignore[union-attr]


def _claim(path: str) -> int:
    """Gradients have the paths and the types of parameters. So have the networks that a step compares with, and does not update."""
    role = _role_of(path)
    return 2 if role == "gradient" else 1 if role is None or _COMPARED.search(path) else 0


def takers(arguments: Sequence[Argument], results: Sequence[Argument]) -> List[Optional[int]]:
    """For each argument, the result that takes its place. Each result takes that of one argument, first of those that are called state."""
    left: Dict[Argument, List[int]] = {}
    for index, result in enumerate(results):
        left.setdefault(Argument(below_root(result.path), result.kind), []).append(index)
    out: List[Optional[int]] = [None] * len(arguments)
    for index in sorted(range(len(arguments)), key=lambda index: _claim(arguments[index].path)):
        path, kind = arguments[index]
        # The first argument of a function may itself be a tuple or a list: `state[0]['w']`.
        keys = (Argument(below_root(path), kind), Argument(path[len(re.match(r"\w*", path).group()):], kind))  # type: ignore[union-attr]
        found = next((left[key] for key in keys if left.get(key)), None)
        out[index] = found.pop(0) if found else None
    return out


def handed_on(arguments: Sequence[Argument], results: Sequence[Argument]) -> List[bool]:
    return [taker is not None for taker in takers(arguments, results)]


def updates_state(arguments: Sequence[Argument], results: Sequence[Argument]) -> bool:
    """Whether it is the part of a training step that applies gradients computed elsewhere."""
    roles = [_role_of(argument.path) for argument in arguments]
    handed = {role for role, stays in zip(roles, handed_on(arguments, results)) if stays}
    return "optimizer_state" in handed or ("parameter" in handed and "gradient" in roles)


class _Mirrored:
    """The layers of the parameters. The state of an optimizer has their paths below its own: opt_state[0].mu['encoder']['dense_0']['kernel']."""

    def __init__(self, parameters: Sequence[Argument]) -> None:
        self._layers = {_inside(path): layer_of(path) for path, _ in parameters}
        self._kinds = {(_inside(path), kind) for path, kind in parameters}
        self._paths = {path for path, _ in parameters}

    def has(self, path: str) -> bool:
        return path not in self._paths and self._match(path) is not None

    def layer(self, path: str) -> Optional[str]:
        return self._layers.get(self._match(path) or ()) if self._layers else layer_of(_below_optimizer(path))

    def is_like(self, argument: Argument) -> bool:
        """Whether it has the path and the type of a parameter, below a root of its own."""
        return (_inside(argument.path), argument.kind) in self._kinds

    def _match(self, path: str) -> Optional[Tuple[str, ...]]:
        """The longest end of the path that is a parameter."""
        parts = tuple(parts_of(path)[1:])
        return next((parts[start:] for start in range(len(parts)) if parts[start:] in self._layers), None)


def _below_optimizer(path: str) -> str:
    """Without the names that the optimizer has for its state, which are those of the members of tuples: "opt_state[0].mu['w']" -> "['w']"."""
    return re.sub(r"^\w*(\[\d+\])*(\.\w+(\[\d+\])*)*", "", path)


def _is_batch(path: str, role: Optional[str], stays: bool) -> bool:
    """Weights of the examples in a batch, which nothing takes the place of, are not those of a network."""
    return not stays and role == "parameter" and bool(_SAMPLE_WEIGHTS.fullmatch(parts_of(path)[-1]))


def classify(arguments: Sequence[Argument], results: Sequence[Argument], donated: Sequence[Donation], flow: Optional[Flow] = None) -> List[Label]:
    """What each argument of a program that trains (`flow`) or updates state is."""
    taken = takers(arguments, results)
    roles = [_role_of(argument.path) or (_role_by_use(argument, index, taker, flow) if flow and taker is not None else None)
             for index, (argument, taker) in enumerate(zip(arguments, taken))]
    mirrored = _Mirrored([argument for argument, role in zip(arguments, roles) if role == "parameter"])
    return [_label(argument, role, taker is not None, bool(gone), mirrored, flow is not None)
            for argument, role, taker, gone in zip(arguments, roles, taken, donated)]


def _is_named(path: str) -> bool:
    return any(re.match(r"[A-Za-z_]", part) for part in parts_of(path)[1:])


def _role_by_use(argument: Argument, index: int, taker: int, flow: Flow) -> str:
    """Of an argument in whose place there is a result, in a program that trains."""
    if flow.needs_gradient(taker):
        return "parameter" if flow.is_differentiated(index) else "optimizer_state"
    # State that is not learned. Where only the type is the same, it may as well be what the network predicts.
    return "buffer" if _is_named(argument.path) or "x" not in argument.kind else "input"


def _label(argument: Argument, role: Optional[str], stays: bool, donated: bool, mirrored: _Mirrored, trains: bool) -> Label:
    path = argument.path
    if role == "input" or _is_batch(path, role, stays):
        return Label("input", None)
    if role is None and not stays and not trains and mirrored.is_like(argument):
        role = "gradient"
    if role is None and not stays and not donated:
        return Label("input", None)
    if role is None:
        if not _is_named(path):
            return Label("unknown", None)       # `state[2][5]`: its place alone says nothing
        role = "optimizer_state" if mirrored.has(path) else "parameter"
    if role == "buffer":
        return Label(role, "/".join(_inside(path)[:-1]) or None)
    return Label(role, mirrored.layer(path) if role == "optimizer_state" else layer_of(path))


_STATE = ("parameter", "optimizer_state", "buffer")


def label_results(arguments: Sequence[Argument], named: Sequence[Argument], labels: Sequence[Label], results: Sequence[Argument], flow: Flow) -> List[Tuple[str, Label]]:
    """Name and label of each result, with the arguments as `named` for people: the next state has those of the argument whose place it takes. What the caller of a program that only
    computes gradients gets in the place of a parameter is its gradient."""
    out = [("", Label("unknown", None))] * len(results)
    for index, taker in enumerate(takers(arguments, results)):
        if taker is None or labels[index].category not in _STATE:
            continue
        is_gradient = labels[index].category == "parameter" and (flow.is_gradient(taker) or not flow.is_updated(index))
        out[taker] = (results[taker].path, Label("gradient", labels[index].layer)) if is_gradient else (named[index].path, labels[index])
    return out
