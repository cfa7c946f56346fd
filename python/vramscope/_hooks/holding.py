"""Containers that grow by tensors: the list of losses, the history that nobody empties.

Looks only while the framework's live bytes grow, and spends about a hundredth of the training time on it. The line reported is the one
that appends to the container.
"""
from __future__ import annotations

import ast
import collections
import gc
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .. import holders
from . import emit, lines

_SHARE = 0.01
_FEW = 4
_MOST_TAGS = 64


class Watch:
    """`after_step(n)` is called after each step. `live_bytes` tells what the framework holds, `tensor_type` what to look for.

    Every fourth step the live bytes are compared with those before. Where they have grown, all containers are looked at (tens of
    milliseconds), and again four steps later; then not for a hundred times as long as that took.
    """

    _EVERY = 4

    def __init__(self, live_bytes: Callable[[], Optional[int]], tensor_type: type) -> None:
        self._live_bytes, self._tensor_type = live_bytes, tensor_type
        self._live: Optional[int] = None
        self._not_before = 0.0
        self._first_look: Dict[int, int] = {}       # id of a container -> tensors in it
        self._first_look_at = 0
        self._spent = 0.0

    def after_step(self, step: int) -> None:
        if step % self._EVERY:
            return
        if self._first_look_at:
            emit.quietly(lambda: self._second(step))
            return
        if time.monotonic() < self._not_before:
            return
        live, before = self._live_bytes(), self._live
        self._live = live
        if live is not None and before is not None and live > before:
            emit.quietly(lambda: self._first(step))

    def _first(self, step: int) -> None:
        began = time.monotonic()
        self._first_look_at = step
        self._first_look = {id(container): len(tensors) for container, tensors in self._containers()}
        self._spent = time.monotonic() - began

    def _second(self, step: int) -> None:
        began = time.monotonic()
        steps, self._first_look_at = step - self._first_look_at, 0
        try:
            for container, tensors in self._containers():
                before = self._first_look.get(id(container), 0)
                if before and len(tensors) > before:
                    _report(container, tensors, (len(tensors) - before) / steps)
        finally:
            now = time.monotonic()
            self._not_before = now + min(60.0, (self._spent + now - began) / _SHARE)

    def _containers(self) -> Iterator[Tuple[Any, List[Any]]]:
        kinds = (list, dict, collections.deque)
        for thing in gc.get_objects():
            if type(thing) in kinds and len(thing) >= _FEW:     # subclasses may do anything when they are asked
                try:
                    tensors = list(self._tensors(thing))
                except RuntimeError:                            # changed meanwhile
                    continue
                if len(tensors) >= _FEW:
                    yield thing, tensors

    def _tensors(self, container: Any) -> Iterator[Any]:
        values = container.values() if isinstance(container, dict) else container
        if not self._inside(next(reversed(values), None)):
            return
        for value in list(values):
            yield from self._inside(value)

    def _inside(self, value: Any) -> List[Any]:
        if isinstance(value, self._tensor_type):
            return [value]
        if isinstance(value, (tuple, list)) and len(value) <= 16:
            return [one for one in value if isinstance(one, self._tensor_type)]
        if isinstance(value, dict) and len(value) <= 16:
            return [one for one in value.values() if isinstance(one, self._tensor_type)]
        return []


def _size(tensor: Any) -> int:
    count = tensor.shape.num_elements() if hasattr(tensor.shape, "num_elements") else tensor.numel()
    return int(count or 0) * int(getattr(tensor.dtype, "size", 0) or tensor.element_size())


def _report(container: Any, tensors: List[Any], per_step: float) -> None:
    chains = [chain for chain in holders.who_holds(container) if chain.file and _of_user(chain.file)]
    if not chains:
        return
    chain = chains[0]
    line = _appending_line(chain) or chain.line or 0
    emit.fact("held_tensors", key=f"{chain.file}:{line}", container=type(container).__name__, name=chain.expression, owner=chain.root,
              count=len(tensors), bytes=sum(map(_size, tensors)), per_step=round(per_step, 3), file=chain.file, line=line)
    _tag(tensors[-_MOST_TAGS:], f"kept in {chain.expression} ({chain.file}:{line})")


def _of_user(file: str) -> bool:
    return lines._decide(file)


def _tag(tensors: List[Any], name: str) -> None:
    from .. import _address
    for tensor in tensors:
        try:
            address, size = _address.of(tensor)
        except TypeError:
            continue
        emit.tag(address, size, "unknown", name, None)


def _appending_line(chain: holders.Chain) -> Optional[int]:
    """Where the container gets longer, in the file of its owner: `name.append(...)`, `+=`, `name[key] = ...`."""
    try:
        with open(chain.file or "", encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return None
    wanted = chain.expression.split("[")[0].split(".")[-1].split(" ")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (
                "append", "extend", "appendleft", "insert", "setdefault", "update") and _last_name(node.func.value) == wanted:
            return node.lineno
        if isinstance(node, ast.AugAssign) and _last_name(node.target) == wanted:
            return node.lineno
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and _last_name(target.value) == wanted:
                    return node.lineno
    return None


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return node.id if isinstance(node, ast.Name) else ""


def live_bytes() -> Optional[int]:
    """Of all tensor-level pools together, from the recorder."""
    from .. import _recorder
    recorder = _recorder.active()
    if recorder is None:
        return None
    return sum(pool.current_bytes for pool in recorder.pool_list() if pool.level == 2)
