"""What a program can say about itself while it is recorded. All of it does nothing when nothing is recorded."""
from __future__ import annotations

import itertools
import operator
from types import TracebackType
from typing import Optional, Tuple, Type

from . import _recorder
from ._recorder import BEGIN, CATEGORIES, END, INSTANT, SCOPE, STEP

_steps = itertools.count()


def _text(name: object) -> bytes:
    """A label must never end a training: anything that has a text is taken, and what is no text in UTF-8 is replaced."""
    return name if isinstance(name, bytes) else str(name).encode("utf-8", "replace")


def _integer(name: str, value: object, least: int = -1 << 63, most: int = (1 << 63) - 1) -> int:
    """Checked also where nothing is recorded: a program must not fail only because it is recorded."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}={value!r}: an integer") from None
    if not least <= number <= most:
        raise ValueError(f"{name}={value!r}: from {least} to {most}")
    return number


def mark(name: str, number: int = -1, detail: Optional[str] = None) -> None:
    """A point in time with a name, shown on the timeline."""
    number = _integer("number", number)
    recorder = _recorder.loaded()
    if recorder is not None:
        recorder.mark(SCOPE, INSTANT, _text(name), number, None if detail is None else _text(detail))  # type: ignore[attr-defined]


def step(number: Optional[int] = None) -> None:
    """One iteration of the training loop begins here (and the one before ends). Counts on its own where no number is given."""
    number = None if number is None else _integer("number", number)
    recorder = _recorder.loaded()
    if recorder is not None:
        recorder.mark(STEP, INSTANT, b"step", next(_steps) if number is None else number, None)  # type: ignore[attr-defined]


class scope:
    """`with vramscope.scope("encoder"):` names a part of the program; scopes nest."""

    __slots__ = ("_name", "_number")

    def __init__(self, name: str, number: int = -1) -> None:
        self._name = _text(name)
        self._number = _integer("number", number)

    def __enter__(self) -> "scope":
        self._edge(BEGIN)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self._edge(END)

    def _edge(self, edge: int) -> None:
        recorder = _recorder.loaded()
        if recorder is not None:
            recorder.mark(SCOPE, edge, self._name, self._number, None)  # type: ignore[attr-defined]


def tag(tensor_or_address: object, name: str, category: str = "buffer", layer: Optional[str] = None,
        bytes: Optional[int] = None) -> None:  # noqa: A002 (the word people know)
    """Says what lives in a tensor (or at an address): `tag(table, "lookup table")`, `tag(h, "kv cache", layer="block_3")`.

    category is one of the report's: parameter, gradient, optimizer_state, activation, input, temporary, constant, buffer, ...
    """
    if not isinstance(category, str) or category not in CATEGORIES:
        raise ValueError(f"unknown category '{category}'; one of {', '.join(CATEGORIES)}")
    address, size = _locate(tensor_or_address, bytes)
    recorder = _recorder.loaded()
    if recorder is not None:
        recorder.tag(address, size, CATEGORIES[category], _text(name), None if layer is None else _text(layer))  # type: ignore[attr-defined]


def _locate(thing: object, size: Optional[int]) -> Tuple[int, int]:
    if size is not None:
        size = _integer("bytes", size, 0)
    if isinstance(thing, int) and not isinstance(thing, bool):
        return _integer("address", thing, 1, (1 << 64) - 1), size or 0
    from . import _address
    address, found = _address.of(thing)
    return address, found if size is None else size
