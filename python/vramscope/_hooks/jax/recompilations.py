"""Functions that are compiled again and again: how often, and what was different the last time."""
from __future__ import annotations

import inspect
import reprlib
from typing import Any, Dict, List, NamedTuple, Tuple

from .. import emit, lines
from . import frames, judging
from .arguments import Argument

_FEW, _FEW_OF_OPS = 3, 30       # compilations that are not worth a report


class _Static(NamedTuple):
    text: str
    hash: int                   # of the value: JAX compares static values by their hashes first


class _Compiled(NamedTuple):
    times: int
    arguments: List[Argument]
    statics: Dict[str, _Static]


_compiled: Dict[Tuple[str, str], _Compiled] = {}        # by the function's name and where it is defined: lambdas have the same name


def note(name: str, source: str, arguments: List[Argument]) -> None:
    """Called for each compilation. Each one that is reported replaces the report before it."""
    place, statics = lines.user_line(), _statics(name)
    before = _compiled.get((name, source), _Compiled(0, [], {}))
    now = _compiled[name, source] = _Compiled(before.times + 1, arguments, statics)
    if place is None or now.times < (_FEW_OF_OPS if _is_single_op(source, arguments) else _FEW):
        return
    emit.report("retrace", function=judging.function_of(name), traces=now.times, reason=judging.readable(_reason(before, now))[:300], file=place.file,
                line=place.line)


def _is_single_op(source: str, arguments: List[Argument]) -> bool:
    """An op or a function of a library, such as jnp.where, is compiled for each shape: a model with many layers does that when it is
    initialized."""
    unnamed = bool(arguments) and all(argument.path.startswith("args[") for argument in arguments)
    return unnamed or (bool(source) and not lines.is_user_file(source.rpartition(":")[0]))


def _reason(before: _Compiled, now: _Compiled) -> str:
    if len(before.arguments) != len(now.arguments):
        return f"it had {len(before.arguments)} arguments, and now has {len(now.arguments)}"
    changed = [f"{new.path or 'an argument'} was {old.kind}, and is {new.kind}" for old, new in zip(before.arguments, now.arguments) if old != new]
    changed += [_static_change(name, before.statics[name], static) for name, static in now.statics.items()
                if before.statics.get(name, static).hash != static.hash]
    return "; ".join(changed[:3]) or "its arguments are the same: the function object is created again each time, or a static value changed"


def _static_change(name: str, old: _Static, new: _Static) -> str:
    return f"{name} was {old.text}, and is {new.text}" if old.text != new.text else f"{name} is another {new.text}"


def _statics(name: str) -> Dict[str, _Static]:
    """The static values of the call of jax.jit that has this program compiled."""
    found = frames.variables("jax/_src/pjit.py", "fun", "jit_info", "args", "kwargs")
    if not found or judging.function_of(name) != getattr(found["fun"], "__name__", "").strip("_<>"):
        return {}
    try:
        parameters = list(inspect.signature(found["fun"]).parameters)
        values = {parameters[number]: found["args"][number] for number in found["jit_info"].static_argnums if number < len(found["args"])}
        values.update((key, found["kwargs"][key]) for key in found["jit_info"].static_argnames if key in found["kwargs"])
        return {key: _Static(_text(value), hash(value)) for key, value in values.items()}
    except (AttributeError, IndexError, TypeError, ValueError):
        return {}


def _text(value: Any) -> str:
    """Only of what Python itself can write: the text of another object may be long, or computed."""
    plain = (bool, int, float, str, bytes, type(None))
    members = value if type(value) is tuple else (value,)
    return reprlib.repr(value) if all(type(one) in plain for one in members) else type(value).__name__
