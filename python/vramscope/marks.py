"""Labels that a program can add to its recording. All of these functions do nothing if nothing is recorded."""
from __future__ import annotations

import itertools
import operator
from types import TracebackType
from typing import Optional, Tuple, Type

from . import _recorder
from ._schema import BEGIN, CATEGORIES, END, INSTANT, SCOPE, STEP

_steps = itertools.count()


def _text(name: object) -> bytes:
    """A label must never stop a training run: any object with a text form is accepted, and text that is not valid UTF-8 is replaced."""
    return name if isinstance(name, bytes) else str(name).encode("utf-8", "replace")


def _integer(name: str, value: object, least: int = -1 << 63, most: int = (1 << 63) - 1) -> int:
    """Also checked if nothing is recorded: a program must not fail only when it is recorded."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}={value!r}: expected an integer") from None
    if not least <= number <= most:
        raise ValueError(f"{name}={value!r}: expected a value from {least} to {most}")
    return number


def mark(name: str, number: int = -1, detail: Optional[str] = None) -> None:
    """Adds a named point in time, shown on the timeline."""
    number = _integer("number", number)
    recorder = _recorder.loaded()
    if recorder is not None:
        recorder.mark(SCOPE, INSTANT, _text(name), number, None if detail is None else _text(detail))  # type: ignore[attr-defined]


def step(number: Optional[int] = None) -> None:
    """Starts a new iteration of the training loop (and ends the previous one). Counts automatically if no number is given."""
    number = None if number is None else _integer("number", number)
    recorder = _recorder.loaded()
    if recorder is not None:
        recorder.mark(STEP, INSTANT, b"step", next(_steps) if number is None else number, None)  # type: ignore[attr-defined]


class scope:
    """`with vramscope.scope("encoder"):` names a part of the program. Scopes can be nested."""

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
    """Labels the contents of a tensor (or of an address): `tag(table, "lookup table")`, `tag(h, "kv cache", layer="block_3")`.

    category is one of parameter, gradient, optimizer_state, activation, input, temporary, constant, buffer, ...
    """
    if not isinstance(category, str) or category not in CATEGORIES:
        raise ValueError(f'unknown category "{category}": expected one of {", ".join(CATEGORIES)}')
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
