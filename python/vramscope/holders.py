"""`who_holds`: the Python objects that keep a tensor alive, as short chains a person can read.

    >>> print(vramscope.who_holds(loss))
    losses[12], global of __main__ (train.py)
"""
from __future__ import annotations

import collections
import gc
import inspect
import sys
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Union

from . import _address

_MOST_CHAINS, _MOST_LOOKS, _DEEPEST = 8, 3000, 12
_OURS_ALONE = 3                 # references to a frame's dictionary: the frame's, ours, and the one that counts them


_SHARED = (bool, str, bytes, float, complex, types.ModuleType, type, types.BuiltinFunctionType)


def _brief(thing: Any) -> str:
    text = repr(thing)
    return text if len(text) <= 60 else text[:57] + "..."


class Chain(NamedTuple):
    """One way in which an object is kept alive."""

    expression: str             # "losses[12]", "self.history['loss'][3]"
    root: str                   # "global of __main__ (train.py)", "local of train() (train.py:42)"
    kind: str                   # global, local, traceback, closure, variable, tape, other
    file: Optional[str] = None
    line: Optional[int] = None
    name: str = ""              # the variable at the root: "losses"

    def __str__(self) -> str:
        return f"{self.expression}, {self.root}"


class Holders(List[Chain]):
    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "no Python object holds it"


def who_holds(tensor_or_address: Union[int, Any]) -> Holders:
    """The chains of Python objects that end at this tensor, or at the tensors and variables that lie at this address.

    TypeError for what the whole program shares and nobody keeps alive: None, texts, numbers, modules, classes.
    """
    if isinstance(tensor_or_address, _SHARED) or tensor_or_address is None:
        raise TypeError(f"who_holds({_brief(tensor_or_address)}): give a tensor, a variable or an address")
    if isinstance(tensor_or_address, int):
        if tensor_or_address <= 0:
            raise ValueError(f"who_holds({tensor_or_address}): an address is more than 0")
        chains = Holders()
        for thing in _things_at(tensor_or_address):
            chains.extend(_chains(thing))
            if _is_variable(thing):
                chains.append(Chain(_name_of_variable(thing), "a variable: its value lives as long as it does", "variable"))
            del thing
        chains.extend(_tapes())
        return chains
    return _chains(tensor_or_address)


# --- what lies at an address ---------------------------------------------------------------------------------------------------

def _is_variable(thing: Any) -> bool:
    return hasattr(thing, "read_value") and hasattr(thing, "handle")


def _name_of_variable(variable: Any) -> str:
    return str(getattr(variable, "path", None) or getattr(variable, "name", "variable"))


def _things_at(address: int) -> Iterator[Any]:
    for thing in gc.get_objects():
        kind = type(thing)
        if kind.__name__ in ("EagerTensor", "Tensor", "Parameter", "ResourceVariable", "UninitializedVariable"):
            try:
                begin, size = _address.of(thing)
            except TypeError:
                continue
            if begin <= address < begin + max(1, size):
                yield thing


def _tapes() -> Iterator[Chain]:
    for thing in gc.get_objects():
        if type(thing).__name__ == "GradientTape" and getattr(thing, "_tape", None) is not None:
            how = "a persistent GradientTape" if getattr(thing, "_persistent", False) else "a GradientTape"
            for chain in _chains(thing)[:1]:
                yield chain._replace(root=f"{how} that is alive holds what was computed under it; {chain.root}", kind="tape")


# --- upwards from an object ------------------------------------------------------------------------------------------------------

class _Step(NamedTuple):
    thing: Any
    suffix: str         # how the target is reached from `thing`: "[12].value"
    depth: int


def _chains(target: Any) -> Holders:
    modules = {id(vars(module)): module for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)}
    ours: Set[int] = set()
    out, seen = Holders(), {id(target)}
    todo = collections.deque([_Step(target, "", 0)])
    ours.update((id(modules), id(seen), id(todo), id(out), id(ours)))
    looks = 0
    for chain in _from_frames(target, "", 0):
        out.append(chain)
    while todo and looks < _MOST_LOOKS and len(out) < _MOST_CHAINS:
        step = todo.popleft()
        looks += 1
        for holder in gc.get_referrers(step.thing):
            if id(holder) in ours or id(holder) in seen or isinstance(holder, (_Step, types.FrameType)) and _is_ours(holder):
                continue
            seen.add(id(holder))
            if isinstance(holder, dict) and id(holder) in modules:
                out.extend(_global(modules[id(holder)], holder, step))
                continue
            if isinstance(holder, types.FrameType):
                out.extend(_local(holder, step.thing, step.suffix))
                continue
            access = _access(holder, step.thing)
            if access is None or step.depth >= _DEEPEST:
                continue
            suffix = _join(access, step)
            out.extend(_from_frames(holder, suffix, step.depth + 1))
            todo.append(_Step(holder, suffix, step.depth + 1))
    return Holders(_unique(out)[:_MOST_CHAINS])


def _join(access: str, step: _Step) -> str:
    """An object's dictionary and a key in it are an attribute."""
    if access == "" and step.suffix.startswith("['"):
        key, _, rest = step.suffix[2:].partition("']")
        return f".{key}{rest}"
    return access + step.suffix


def _unique(chains: List[Chain]) -> List[Chain]:
    return list(dict.fromkeys(sorted(chains, key=lambda chain: len(chain.expression))))


def _is_ours(thing: Any) -> bool:
    return isinstance(thing, _Step) or (isinstance(thing, types.FrameType) and thing.f_code.co_filename == __file__)


def _short(file: str) -> str:
    return file.rsplit("/", 1)[-1]


def _global(module: types.ModuleType, names: Dict[str, Any], step: _Step) -> Iterator[Chain]:
    file = getattr(module, "__file__", None)
    for name, value in list(names.items()):
        if value is step.thing and not (name.startswith("_") and name[1:].lstrip("i").isdigit()):
            where = f" ({_short(file)})" if file else ""
            yield Chain(name + step.suffix, f"global of {module.__name__}{where}", "global", file, None, name)


def _locals_of(frame: types.FrameType) -> Dict[str, Any]:
    """Up to Python 3.12 a function's frame keeps the dictionary that it was asked for, and with it every tensor that was a local then:
    it is emptied, unless the program has it too."""
    names = frame.f_locals
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:        # a module or a class: these are its names themselves
        return {} if names is frame.f_globals else dict(names)
    out = dict(names)
    if isinstance(names, dict) and sys.getrefcount(names) <= _OURS_ALONE:
        names.clear()
    return out


def _local(frame: types.FrameType, thing: Any, suffix: str) -> Iterator[Chain]:
    code = frame.f_code
    for name, value in _locals_of(frame).items():
        if value is thing:
            where = f"local of {code.co_name}() ({_short(code.co_filename)}:{frame.f_lineno})"
            yield Chain(name + suffix, where, "local", code.co_filename, frame.f_lineno, name)


def _from_frames(thing: Any, suffix: str, depth: int) -> Iterator[Chain]:
    """Locals of running functions: the interpreter does not list those as referrers."""
    for top in list(sys._current_frames().values()):
        frame: Optional[types.FrameType] = top
        while frame is not None:
            if frame.f_code.co_filename != __file__:
                yield from _local(frame, thing, suffix)
            frame = frame.f_back
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    traceback = getattr(error, "__traceback__", None)
    while traceback is not None:
        for chain in _local(traceback.tb_frame, thing, suffix):
            yield chain._replace(root=f"traceback of the last {type(error).__name__}: {chain.root}", kind="traceback")
        traceback = traceback.tb_next


def _access(holder: Any, child: Any) -> Optional[str]:
    """How to get from the holder to the child: an index, a key, an attribute. None: not a way a person would name."""
    if isinstance(holder, (list, tuple, collections.deque)):
        for index, value in enumerate(holder):
            if value is child:
                return f"[{index}]"
        return None
    if isinstance(holder, dict):
        for key, value in list(holder.items()):
            if value is child:
                return f"[{key!r}]" if isinstance(key, (str, int)) else f"[<{type(key).__name__}>]"
        return None
    if isinstance(holder, (set, frozenset)):
        return "{...}"
    if isinstance(holder, types.CellType):
        return " (closure)"
    if isinstance(holder, types.FunctionType):
        return f" of {holder.__qualname__}()"
    if isinstance(holder, types.TracebackType):
        return " (traceback)"
    if isinstance(holder, (types.ModuleType, types.FrameType)):
        return None
    return _attribute(holder, child)


def _attribute(holder: Any, child: Any) -> Optional[str]:
    try:
        names = vars(holder)
    except TypeError:
        names = {}
    if names is child:                  # an object's own dictionary is the object itself
        return ""
    for name, value in list(names.items()):
        if value is child:
            return f".{name}"
    for name in getattr(type(holder), "__slots__", ()):
        if isinstance(name, str) and getattr(holder, name, None) is child:
            return f".{name}"
    return None
