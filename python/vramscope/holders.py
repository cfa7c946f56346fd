"""`who_holds`: the Python objects that keep a tensor alive, as short chains a person can read.

    >>> print(vramscope.who_holds(loss))
    losses[12], global of __main__ (train.py)

The search must keep nothing alive: it remembers only addresses and texts of frames and modules. No variable in this module ever holds a frame
of this package, because such a frame would keep itself, and with it everything on the stack, alive until the next garbage collection.
"""
from __future__ import annotations

import collections
import gc
import inspect
import os
import sys
import threading
import types
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

from . import _address, _cycles

_MOST_CHAINS, _MOST_LOOKS, _DEEPEST = 8, 3000, 12
_OURS_ALONE = 3                 # references to a frame's dictionary: the frame's, ours, and the one that counts them
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


_SHARED = (bool, str, bytes, float, complex, types.ModuleType, type, types.BuiltinFunctionType)


def _brief(thing: Any) -> str:
    text = repr(thing)
    return text if len(text) <= 60 else text[:57] + "..."


class Chain(NamedTuple):
    """One way in which an object is kept alive."""

    expression: str             # "losses[12]", "self.history['loss'][3]"
    root: str                   # "global of __main__ (train.py)", "local of train() (train.py:42)"
    kind: str                   # global, local, traceback, variable, tape, cycle
    file: Optional[str] = None
    line: Optional[int] = None
    name: str = ""              # the variable at the root: "losses"

    def __str__(self) -> str:
        return f"{self.expression}, {self.root}"


class Holders(List[Chain]):
    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "no Python object holds it"


def who_holds(tensor_or_address: Union[int, Any]) -> Holders:
    """Returns the chains of Python objects that lead to this tensor, or to the tensors and variables at this address.

    If only a cycle of objects that the program cannot reach holds it, the answer is one chain of the kind "cycle": garbage that the next
    collection frees, not a leak.

    Raises TypeError for objects that the whole program shares: None, strings, numbers, modules, classes.
    """
    if isinstance(tensor_or_address, _SHARED) or tensor_or_address is None:
        raise TypeError(f"who_holds({_brief(tensor_or_address)}): expected a tensor, a variable or an address")
    if isinstance(tensor_or_address, int):
        if tensor_or_address <= 0:
            raise ValueError(f"who_holds({tensor_or_address}): an address must be greater than 0")
        return _holders_at(tensor_or_address)
    return _chains(tensor_or_address) or _garbage(tensor_or_address)


def _garbage(target: Any) -> Holders:
    kinds = _cycles.members(target)
    if not kinds:
        return Holders()
    return Holders([Chain(f"a cycle of {', '.join(kinds[:4])}", "which the program cannot reach: garbage, not a leak; gc.collect() frees it", "cycle")])


# --- what lies at an address ---------------------------------------------------------------------------------------------------

_TENSORS = ("EagerTensor", "Tensor", "Parameter", "ResourceVariable", "UninitializedVariable")


def _holders_at(address: int) -> Holders:
    chains = Holders()
    things = _things_at(address)
    while things:
        thing = things.pop(0)
        chains.extend(_chains(thing) or _garbage(thing))
        if _is_variable(thing):
            chains.append(Chain(_name_of_variable(thing), "a variable, which keeps its value alive", "variable"))
    for tape in _objects_of(("GradientTape",)):
        if getattr(tape, "_tape", None) is not None:
            how = "a persistent GradientTape" if getattr(tape, "_persistent", False) else "a GradientTape"
            chains.extend(chain._replace(root=f"{how} that is still alive keeps what was computed under it; {chain.root}", kind="tape")
                          for chain in _chains(tape)[:1])
    return chains


def _is_variable(thing: Any) -> bool:
    return hasattr(thing, "read_value") and hasattr(thing, "handle")


def _name_of_variable(variable: Any) -> str:
    return str(getattr(variable, "path", None) or getattr(variable, "name", "variable"))


def _things_at(address: int) -> List[Any]:
    found = []
    for thing in _objects_of(_TENSORS):
        try:
            begin, size = _address.of(thing)
        except TypeError:
            continue
        if begin <= address < begin + max(1, size):
            found.append(thing)
    return found


def _objects_of(kinds: Iterable[str]) -> List[Any]:
    return [thing for thing in gc.get_objects() if type(thing).__name__ in kinds]


# --- upwards from an object ------------------------------------------------------------------------------------------------------

class _Step(NamedTuple):
    thing: Any
    suffix: str         # how the target is reached from `thing`: "[12].value"
    depth: int


def _chains(target: Any) -> Holders:
    modules = {id(vars(module)): module for module in list(sys.modules.values()) if type(module) is types.ModuleType}
    roots = _locals_by_value()
    todo = collections.deque([_Step(target, "", 0)])
    seen = {id(target), id(modules), id(todo)}
    out = [root._replace(expression=root.name) for root in roots.get(id(target), ())]
    looks = 0
    while todo and looks < _MOST_LOOKS and len(out) < _MOST_CHAINS:
        step = todo.popleft()
        looks += 1
        for holder in _referrers(step.thing):
            # Roots first: one may hold the target and a container with it, and both keep it alive.
            if id(holder) in modules:
                out.extend(_globals(modules[id(holder)], holder, step))
            elif type(holder) in SUSPENDED:
                out.extend(_locals(getattr(holder, SUSPENDED[type(holder)]), step))
            elif type(holder) is types.FrameType:       # not running: of a traceback that somebody keeps
                out.extend(_locals(holder, step))
            elif id(holder) not in seen and step.depth < _DEEPEST:
                seen.add(id(holder))
                access = _access(holder, step.thing)
                if access is not None:
                    suffix = _join(access, step.suffix)
                    out.extend(root._replace(expression=root.name + suffix) for root in roots.get(id(holder), ()))
                    todo.append(_Step(holder, suffix, step.depth + 1))
    return Holders(_unique(out)[:_MOST_CHAINS])


def _referrers(thing: Any) -> List[Any]:
    return [holder for holder in gc.get_referrers(thing) if not _is_ours(holder)]


def _is_ours(holder: Any) -> bool:
    return type(holder) is _Step or (type(holder) is types.FrameType and is_ours(holder))


def is_ours(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _join(access: str, suffix: str) -> str:
    """An object's dictionary and a key in it are an attribute."""
    if access == "" and suffix.startswith("['"):
        key, _, rest = suffix[2:].partition("']")
        return f".{key}{rest}"
    return access + suffix


def extended(holder: Any, child: Any, suffix: str) -> str:
    """The suffix that leads from the holder to where `suffix` leads from the child."""
    access = _access(holder, child)
    return _join(f" (in a {type(holder).__name__})" if access is None else access, suffix)


def _unique(chains: List[Chain]) -> List[Chain]:
    return list(dict.fromkeys(sorted(chains, key=lambda chain: len(chain.expression))))


def _short(file: str) -> str:
    return file.rsplit("/", 1)[-1]


def _globals(module: types.ModuleType, names: Dict[str, Any], step: _Step) -> List[Chain]:
    return list(_named(of_module(module), names, step.thing, step.suffix))


def of_module(module: types.ModuleType) -> Chain:
    """A chain that begins with a global of this module, without the name of the global."""
    names = vars(module)                # a module may have a __getattr__ of its own
    file = names.get("__file__")
    return Chain("", f"global of {names.get('__name__', '?')}" + (f" ({_short(file)})" if file else ""), "global", file)


def of_frame(frame: types.FrameType) -> Chain:
    """A chain that begins with a local of this function, without the name of the local."""
    return Chain("", _place(frame), "local", frame.f_code.co_filename, frame.f_lineno)


def _named(root: Chain, names: Dict[str, Any], thing: Any, suffix: str) -> Iterator[Chain]:
    """The root with each of the names that `thing` has there. Notebooks keep results under names such as _12 and _i12."""
    for name, value in list(names.items()):
        if value is thing and not (root.kind == "global" and name.startswith("_") and name[1:].lstrip("i").isdigit()):
            yield root._replace(expression=name + suffix, name=name)


def from_root(root: Chain, names: Dict[str, Any], thing: Any, suffix: str) -> Chain:
    return next(_named(root, names, thing, suffix), root._replace(expression="?" + suffix))


# --- locals ----------------------------------------------------------------------------------------------------------------------

def _locals_by_value() -> Dict[int, List[Chain]]:
    """id of each local of the running functions, and of those in the traceback of the last error, to what is to be said of it. The
    interpreter does not list running functions as referrers."""
    found: Dict[int, List[Chain]] = {}
    tops = sys._current_frames()
    tops[threading.get_ident()] = sys._getframe(1)      # not this one
    for frame in tops.values():
        while frame is not None:
            _note_locals(frame, found)
            frame = frame.f_back  # type: ignore[assignment]
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    traceback = getattr(error, "__traceback__", None)
    while traceback is not None:
        _note_locals(traceback.tb_frame, found, f"traceback of the last {type(error).__name__}: ")
        traceback = traceback.tb_next
    return found


def _note_locals(frame: types.FrameType, found: Dict[int, List[Chain]], of_error: str = "") -> None:
    if is_ours(frame):
        return
    where = of_error + _place(frame)
    for name, value in values_of(frame).items():
        found.setdefault(id(value), []).append(
            Chain("", where, "traceback" if of_error else "local", frame.f_code.co_filename, frame.f_lineno, name))


SUSPENDED = {types.GeneratorType: "gi_frame", types.CoroutineType: "cr_frame", types.AsyncGeneratorType: "ag_frame"}


def _locals(frame: Optional[types.FrameType], step: _Step) -> List[Chain]:
    if frame is None:                   # it has ended
        return []
    return list(_named(of_frame(frame), values_of(frame), step.thing, step.suffix))


def _place(frame: types.FrameType) -> str:
    return f"local of {frame.f_code.co_name}() ({_short(frame.f_code.co_filename)}:{frame.f_lineno})"


def values_of(frame: types.FrameType) -> Dict[str, Any]:
    """Up to Python 3.12 a function's frame keeps the dictionary that it was asked for, and with it every tensor that was a local then:
    it is emptied, unless the program has it too."""
    names = frame.f_locals
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:        # a module or a class: these are its names themselves
        return {} if names is frame.f_globals else dict(names)
    out = dict(names)
    if type(names) is dict and sys.getrefcount(names) <= _OURS_ALONE:
        names.clear()
    return out


# --- from a holder to what it holds ------------------------------------------------------------------------------------------------

def is_complete(container: Any) -> bool:
    """C code makes lists and tuples with empty places, which it then fills; an error on the way, such as out of memory, may leave one like that
    for good. The garbage collector lists them too, and reading an empty place ends the process."""
    return type(container) not in (list, tuple) or len(gc.get_referents(container)) == len(container)


def _access(holder: Any, child: Any) -> Optional[str]:
    """How to get from the holder to the child: an index, a key, an attribute. None: not a way a person would name."""
    kind = type(holder)         # isinstance would ask the object itself, which may do anything
    if not is_complete(holder):
        return None
    for base in (list, tuple, collections.deque):
        if issubclass(kind, base):      # a subclass may have an __iter__ of its own, which may do anything
            for index, value in enumerate(base.__iter__(holder)):  # type: ignore[attr-defined]
                if value is child:
                    return f"[{index}]"
            return _attribute(holder, child) if kind is not base else None
    if issubclass(kind, dict):
        for key, value in list(dict.items(holder)):
            if value is child:
                return f"[{key!r}]" if type(key) in (str, int) else f"[<{type(key).__name__}>]"
        return _attribute(holder, child) if kind is not dict else None
    if issubclass(kind, (set, frozenset)):
        return "{...}"
    if kind is types.CellType:
        return " (closure)"
    if kind is types.FunctionType:
        return f" of {holder.__qualname__}()"
    if kind is types.TracebackType:
        return " (traceback)"
    if kind is types.ModuleType:
        return None
    return _attribute(holder, child)


def _attribute(holder: Any, child: Any) -> Optional[str]:
    try:
        names = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        names = {}
    if names is child:                  # an object's own dictionary is the object itself
        return ""
    for name, value in list(names.items()):
        if value is child:
            return f".{name}"
    for base in type(holder).__mro__:
        for name, member in vars(base).items():
            if type(member) is types.MemberDescriptorType and _slot(member, holder) is child:
                return f".{name}"
    return None


def _slot(member: Any, holder: Any) -> Any:
    try:
        return member.__get__(holder)
    except AttributeError:              # empty
        return None
