"""Whether an object is kept only by garbage: cycles of objects that the program cannot reach, until the next collection.

Decided as the collector does it, without collecting: of all objects above the one in question, each has exactly as many references as the
others of them hold. One reference more, and somebody reaches them.
"""
from __future__ import annotations

import collections
import gc
import os
import sys
import types
from typing import Any, Counter, Dict, List, Set

_MOST_OBJECTS, _DEEPEST = 3000, 100
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def members(target: Any) -> List[str]:
    """The types of the objects in those cycles, the program's own before the interpreter's, the most frequent first; none if the object is
    reached, or nothing holds it."""
    above = _above(target)
    if not above or _any_runs(above) or not _is_closed(above):
        return []
    kinds = collections.Counter(type(thing) for thing in above.values() if type(thing) is not dict)
    ordered = sorted(kinds, key=lambda kind: (kind.__module__ in ("builtins", "types"), -kinds[kind], kind.__name__))
    return [kind.__name__ for kind in ordered] or ["dict"]


def _above(target: Any) -> Dict[int, Any]:
    """Everything that refers to the target, to that, and so on; nothing if that is too much. Each call of get_referrers goes through all
    objects of the process, so it is called once for each distance from the target. A plain loop: before Python 3.12 a comprehension keeps
    the names that it uses in cells of its own, which would be found as holders."""
    found: Dict[int, Any] = {}
    level = [target]
    ours = {id(found)}
    for _ in range(_DEEPEST):
        ours.add(id(level))
        holders = []
        for holder in gc.get_referrers(*level):
            if id(holder) not in found and id(holder) not in ours and holder is not target and not _is_our_frame(holder):
                holders.append(holder)
        if not holders:
            return found
        if len(found) + len(holders) > _MOST_OBJECTS:
            return {}
        for holder in holders:
            found[id(holder)] = holder
        level = holders
    return {}


def _is_our_frame(holder: Any) -> bool:
    return type(holder) is types.FrameType and holder.f_code.co_filename.startswith(_PACKAGE)


def _any_runs(things: Dict[int, Any]) -> bool:
    """A function that runs is reached by the interpreter, which counts no reference."""
    running: Set[int] = set()
    for frame in sys._current_frames().values():
        while frame is not None:
            running.add(id(frame))
            frame = frame.f_back  # type: ignore[assignment]
    return any(thing in running for thing in things)


def _references(things: Dict[int, Any], key: int) -> int:
    return sys.getrefcount(things[key])


def _is_closed(things: Dict[int, Any]) -> bool:
    inside: Counter[int] = collections.Counter()
    for thing in things.values():
        inside.update(id(child) for child in gc.get_referents(thing))
    del thing
    ours = _references({0: object()}, 0)            # the dictionary's, and what the count itself adds
    return all(_references(things, key) == inside[key] + ours for key in things)
