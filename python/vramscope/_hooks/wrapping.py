"""Puts calls of ours around a function of a framework, once.

The functions that are called before and after must hold nothing of the program's when they return, but what the token says: names and
numbers. Whatever they raise is dropped.
"""
from __future__ import annotations

import copyreg
import operator
from typing import Any, Callable, Optional

from .. import _recorder
from .._schema import BEGIN, END, PHASE
from . import emit

_MARK = "__vramscope_original__"
Before = Optional[Callable[..., Any]]       # (*args, **kwargs) -> token
After = Optional[Callable[..., None]]       # (token, ok, result, *args, **kwargs)


def around(original: Any, before: Before = None, after: After = None) -> Any:
    """A callable without a frame of its own, so that it never appears in tracebacks; include/vramscope/labels.h."""
    recorder = _recorder.loaded()
    if recorder is None or recorder.around is None:  # type: ignore[attr-defined]
        raise RuntimeError("the recorder is not in this process, or is an older one")
    wrapper = recorder.around(original, before, after)  # type: ignore[attr-defined]
    # Pickled like a function, by name: spawned workers get their main function that way.
    copyreg.pickle(type(wrapper), operator.attrgetter("__qualname__"))
    return wrapper


def is_wrapped(function: Any) -> bool:
    return hasattr(function, _MARK)


def wrap(owner: Any, name: str, before: Before = None, after: After = None) -> bool:
    """Replaces owner.name. False if it does not exist or is already wrapped."""
    original = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
    if original is None or is_wrapped(original) or not callable(original):
        return False
    setattr(owner, name, around(original, before, after))
    return True


def wrap_phase(owner: Any, name: str, phase: str) -> bool:
    """While the function runs, the program is in this phase."""
    return wrap(owner, name, lambda *_, **__: emit.mark(PHASE, BEGIN, phase), lambda *_, **__: emit.mark(PHASE, END, phase))
