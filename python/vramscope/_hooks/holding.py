"""Containers that grow by tensors: the list of losses, the history that nobody empties.

Looks only while the framework's live bytes grow, and spends about a hundredth of the training time on it. One look follows a fixed number of
references from the program's own variables (reachable.py). The line reported is the one that appends to the container. Between two looks
nothing is kept but the containers' addresses and counts.
"""
from __future__ import annotations

import gc
import itertools
import re
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from .. import holders
from . import emit, lines, reachable

_SHARE = 0.01
_FEW = 4
_MOST_TAGS = 64
_MOST_TENSORS = 2000            # looked at in one container: the newest of them
_LONGEST = 200_000              # containers with more entries are not looked into
_SMALL = 16                     # entries of a container in a container
_MOST_REPORTS = 16              # in one look
_NEVER = 1 << 62                # tensors in a container that did not exist before


class Watch:
    """`after_step(n)` is called after each step. `live_bytes` returns what the framework holds, `kinds` are the types to look for (its tensors and
    variables), and `category_of` returns what one of them is for.

    From the fourth step on, every second step, the live bytes are compared with those before. Where they have grown twice in a row, the program's containers are looked at
    (about ten milliseconds), and again four steps later; then not for a hundred times as long as that took. Once is not enough: what the first
    steps create for good grows too, and every program would pay for two looks in its first steps.
    """

    _FIRST = 4
    _EVERY = 2
    _IN_A_ROW = 2
    _BETWEEN_LOOKS = 4

    def __init__(self, live_bytes: Callable[[], Optional[int]], kinds: Tuple[type, ...],
                 category_of: Callable[[Any], str] = lambda thing: "unknown") -> None:
        self._live_bytes, self._kinds, self._category_of = live_bytes, kinds, category_of
        self._live: Optional[int] = None
        self._grown = 0                             # times in a row
        self._not_before = 0.0
        self._first_look: Dict[int, int] = {}       # id of a container -> number of tensors in it
        self._first_look_at = 0
        self._spent = 0.0

    def after_step(self, step: int) -> None:
        if step < self._FIRST or step % self._EVERY:
            return
        if self._first_look_at:
            if step - self._first_look_at >= self._BETWEEN_LOOKS:
                emit.quietly(lambda: self._second(step))
            return
        if time.monotonic() < self._not_before:
            return
        live, before = self._live_bytes(), self._live
        self._live = live
        self._grown = self._grown + 1 if live is not None and before is not None and live > before else 0
        if self._grown >= self._IN_A_ROW:
            emit.quietly(lambda: self._first(step))

    def _first(self, step: int) -> None:
        began = time.monotonic()
        self._first_look_at = step
        self._first_look = {id(found.container): self._count(found.container) for found in self._containers()}
        self._spent = time.monotonic() - began

    def _second(self, step: int) -> None:
        began = time.monotonic()
        steps, self._first_look_at = step - self._first_look_at, 0
        before, self._first_look = self._first_look, {}
        try:
            growing = [(found, self._count(found.container) - before.get(id(found.container), _NEVER)) for found in self._containers()]
            for found, grown in [(found, grown) for found, grown in growing if grown > 0][:_MOST_REPORTS]:
                self._report(found, grown / steps)
        finally:
            now = time.monotonic()
            self._not_before = now + (self._spent + now - began) / _SHARE

    def _containers(self) -> List[reachable.Found]:
        return reachable.Search(lambda container: self._count(container) >= _FEW, self._kinds).run()

    def _count(self, container: Any) -> int:
        """The tensors in a container; in a long one, as many per entry as in its newest entries."""
        length = len(container)
        if length < _FEW or length > _LONGEST:
            return 0
        return round(len(self._tensors(container)) * max(1.0, length / _MOST_TENSORS))

    def _tensors(self, container: Any) -> List[Any]:
        """Those in the newest entries, the newest first."""
        try:
            if type(container) is dict:
                newest = reversed(container.values())
            elif holders.is_complete(container):
                newest = reversed(container)
            else:
                return []
            first = self._inside(next(newest, None))
            return first and first + [tensor for value in list(itertools.islice(newest, _MOST_TENSORS - 1)) for tensor in self._inside(value)]
        except RuntimeError:                            # changed concurrently
            return []

    def _inside(self, value: Any) -> List[Any]:
        """The value, or what a small container has: as the collector sees it, because methods of a subclass may do anything."""
        if issubclass(type(value), self._kinds):
            return [value]
        if issubclass(type(value), (tuple, list, dict)) and reachable.length(value) <= _SMALL:
            return [one for one in gc.get_referents(value) if issubclass(type(one), self._kinds)]
        return []

    def _report(self, found: reachable.Found, per_step: float) -> None:
        chain = found.chain()
        line = _appending_line(chain) or chain.line or 0
        tensors, count = self._tensors(found.container), self._count(found.container)
        if not tensors:
            return
        size = sum(map(_size, tensors)) * count // len(tensors)
        emit.report("held_tensors", container=type(found.container).__name__, name=chain.expression, owner=chain.root, count=count,
                    bytes=size, per_1000_steps=round(1000 * per_step), file=chain.file, line=line)
        for tensor in tensors[:_MOST_TAGS]:
            _tag(tensor, self._category_of(tensor), f"kept in {chain.expression} ({chain.file}:{line})")


def _size(tensor: Any) -> int:
    count = tensor.shape.num_elements() if hasattr(tensor.shape, "num_elements") else tensor.numel()
    return int(count or 0) * int(getattr(tensor.dtype, "size", 0) or tensor.element_size())


def _tag(tensor: Any, category: str, name: str) -> None:
    from .. import _address
    try:
        address, size = _address.of(tensor)
    except TypeError:
        return
    emit.tag(address, size, category, name, None)


# A name, perhaps with subscripts: extended by a method, by `+=`, or by an assignment to a subscript.
_EXTENDED = r"""^[^#\n]*?(?<!\w){name}(?:
    (?:\[[^\n]*\])?\s*\.\s*(?:append|extend|appendleft|insert|setdefault|update)\s*\(
  | (?:\[[^\n]*\])?\s*[+|*]=
  | \[[^\n=]*\]\s*=(?!=))"""


def _appending_line(chain: holders.Chain) -> Optional[int]:
    """The line that extends the container, in the file of its owner. Python's own parser would repeat its warnings about that file."""
    source = lines.source(chain.file or "")
    name = chain.expression.split("[")[0].split(".")[-1].split(" ")[0]
    if source is None or not name.isidentifier():
        return None
    found = re.search(_EXTENDED.format(name=name), source, re.MULTILINE | re.VERBOSE)
    return None if found is None else source.count("\n", 0, found.end()) + 1


def live_bytes() -> Optional[int]:
    """Sum over all tensor-level pools, from the recorder."""
    from .. import _recorder
    recorder = _recorder.active()
    if recorder is None:
        return None
    return sum(pool.current_bytes for pool in recorder.pool_list() if pool.level == 2)
