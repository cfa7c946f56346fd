"""Puts a function in front of another one, once."""
from __future__ import annotations

import functools
from typing import Any, Callable

_MARK = "__vramscope_original__"


def wrap(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> bool:
    """Replaces owner.name by make(original). False if there is no such name here, or it is wrapped already."""
    original = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
    if original is None or hasattr(original, _MARK) or not callable(original):
        return False
    replacement = functools.wraps(original)(make(original))
    setattr(replacement, _MARK, original)
    # TensorFlow's AutoGraph would rewrite our function when a traced one calls it; this attribute says that it is not to.
    replacement.autograph_info__ = {}  # type: ignore[attr-defined]
    setattr(owner, name, replacement)
    return True
