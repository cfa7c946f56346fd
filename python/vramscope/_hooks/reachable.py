"""The containers that a program reaches from its own variables: globals of its modules, locals of its running and its suspended functions.

The search goes down from these, breadth first, and ends after a fixed number of references: it costs the same in a process with a thousand
objects as in one with millions, where each question to the collector (gc.get_objects, gc.get_referrers) takes tens of milliseconds. It runs no
code of the program: references are read as the collector reads them. What it returns refers to the program's objects; whoever calls it must
drop the result before returning to the program.
"""
from __future__ import annotations

import collections
import functools
import gc
import sys
import threading
import types
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Set, Tuple, Union

from .. import holders
from . import lines

MOST_REFERENCES = 20_000
_LEAVES = (types.ModuleType, types.FrameType, types.CodeType, types.BuiltinFunctionType)
_SIZED = (list, dict, tuple, set, frozenset, collections.deque)
CONTAINERS = (list, dict, collections.deque)
_ENTRIES = 64                   # of a container that `find` reads in the time of one reference
_SKIP, _AS_ITS_HOLDER, _NEAR, _FAR = range(4)


class _Root(NamedTuple):
    names: Dict[str, Any]
    chain: holders.Chain
    is_user: bool               # of a framework's function: only a way to a generator of the program


class Found(NamedTuple):
    container: Any
    chain: Callable[[], holders.Chain]


def length(container: Any) -> int:
    """len() without the program's own __len__; 0 for objects of other types."""
    for base in _SIZED:
        if issubclass(type(container), base):
            return base.__len__(container)  # type: ignore[no-any-return, attr-defined]
    return 0


class Search:
    """`find` decides on each list, dict and deque whether it is wanted; what a wanted one contains is not searched. `leaves`: types of objects
    that are not searched either."""

    def __init__(self, find: Callable[[Any], bool], leaves: Tuple[type, ...], most: int = MOST_REFERENCES) -> None:
        self._find, self._leaves, self._left = find, leaves + _LEAVES, most
        # Modules as they are, and things in two lists: thousands of small tuples would make the collector run.
        self._roots: List[Union[_Root, types.ModuleType]] = []
        self._things: List[Any] = []
        self._parents: List[int] = []                       # index of what refers to it; of a root: -1 minus its index
        self._near: Deque[int] = collections.deque()        # indices of things to search; the program's own objects come first
        self._far: Deque[int] = collections.deque()
        self._route: Dict[type, int] = {}
        self._found: List[int] = []
        self._seen: Set[int] = set()
        self.visited = 0                                    # references

    def run(self) -> List[Found]:
        modules = [module for module in list(sys.modules.values()) if type(module) is types.ModuleType]
        self._seen.update(id(vars(module)) for module in modules)
        running = _running()
        users = [module for module in modules if _is_user(vars(module).get("__file__"))]
        # Each group may use what the groups before it have left, and the search of what they have found continues.
        for queue, frames_of_user, is_wanted, left_to_others in (
                (self._near, True, lambda module: vars(module).get("__name__") == "__main__", self._left // 2),
                (self._near, None, lambda module: not _is_installed(vars(module)["__file__"]), self._left // 4),
                (self._far, False, lambda module: True, 0)):
            roots: List[Union[_Root, types.ModuleType]] = [root for root in running if root.is_user is frames_of_user]
            roots += [module for module in users if is_wanted(module)]
            for root in roots:
                if self._left > left_to_others:
                    self._add_root(root, queue)
            while self._left > left_to_others and (self._near or queue):
                self._look_into(self._near if self._near else queue)
            users = [module for module in users if not is_wanted(module)]
        return [Found(self._things[index], functools.partial(self._chain, index)) for index in self._found]

    def _add_root(self, root: Union[_Root, types.ModuleType], queue: Deque[int]) -> None:
        self._roots.append(root)
        names = root.names if type(root) is _Root else vars(root)
        self._add(list(names.values()), -len(self._roots), queue)

    def _look_into(self, queue: Deque[int]) -> None:
        index = queue.popleft()
        thing = self._things[index]
        if type(thing) in holders.SUSPENDED:
            frame = getattr(thing, holders.SUSPENDED[type(thing)])
            if frame is not None and lines.is_user(frame.f_code):
                self._add_root(_of_frame(frame), self._near)
        elif issubclass(type(thing), type):
            self._add(list(_names_of_class(thing).values()), index, queue)
        elif length(thing) <= self._left:
            self._add(gc.get_referents(thing), index, queue)

    def _add(self, children: List[Any], parent: int, queue: Deque[int]) -> None:
        self.visited += len(children)
        self._left -= len(children)
        for child in children:
            if id(child) in self._seen or not gc.is_tracked(child):
                continue
            self._seen.add(id(child))
            kind = type(child)
            route = self._route.get(kind)
            if route is None:
                route = self._route[kind] = _SKIP if issubclass(kind, self._leaves) else _route(kind)
            if route == _SKIP or (issubclass(kind, type) and _route(child) != _NEAR):
                continue
            index = len(self._things)
            self._things.append(child)
            self._parents.append(parent)
            if kind in CONTAINERS:
                self._left -= len(child) // _ENTRIES
            if kind in CONTAINERS and self._find(child):
                if not self._is_of_framework(index):
                    self._found.append(index)
            else:
                (queue if route == _AS_ITS_HOLDER else self._near if route == _NEAR else self._far).append(index)

    def _is_of_framework(self, index: int) -> bool:
        while index >= 0:
            index = self._parents[index]
        root = self._roots[-1 - index]
        return type(root) is _Root and not root.is_user

    def _chain(self, index: int) -> holders.Chain:
        suffix = ""
        while True:
            thing, parent = self._things[index], self._parents[index]
            if parent < 0:
                root = self._roots[-1 - parent]
                if type(root) is _Root:
                    return holders.from_root(root.chain, root.names, thing, suffix)
                return holders.from_root(holders.of_module(root), vars(root), thing, suffix)  # type: ignore[arg-type]
            suffix = holders.extended(self._things[parent], thing, suffix)
            index = parent


_decided: Dict[str, bool] = {}


def _is_user(file: Any) -> bool:
    if type(file) is not str:
        return False
    known = _decided.get(file)
    if known is None:
        known = _decided[file] = lines.is_user_file(file)
    return known


def _is_installed(file: str) -> bool:
    return "/site-packages/" in file or "/dist-packages/" in file


def _names_of_class(kind: type) -> Any:
    return type.__dict__["__dict__"].__get__(kind)


def _route(kind: type) -> int:
    module = _names_of_class(kind).get("__module__", "builtins")
    if type(module) is not str or module in ("builtins", "collections"):
        return _AS_ITS_HOLDER
    return _FAR if lines.is_framework(module) else _NEAR


def _of_frame(frame: types.FrameType) -> _Root:
    return _Root(holders.values_of(frame), holders.of_frame(frame), lines.is_user(frame.f_code, frame.f_lineno))


def _running() -> List[_Root]:
    """No variable may hold a frame of this package at the end (see holders.py)."""
    found = []
    tops = sys._current_frames()
    tops[threading.get_ident()] = sys._getframe(1)
    for frame in tops.values():
        while frame is not None:
            if not holders.is_ours(frame):
                found.append(_of_frame(frame))
            frame = frame.f_back  # type: ignore[assignment]
    return found
