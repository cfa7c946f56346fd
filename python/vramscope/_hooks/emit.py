"""What hooks say to the recorder.

Nothing is said when a framework is merely imported: a process that never computes must leave no trace. The settings are therefore
queued and go out with the first mark.
"""
from __future__ import annotations

import itertools
import json
import os
from typing import Callable, Dict, List, Optional

from .. import _recorder
from .._recorder import BEGIN, CATEGORIES, END, INSTANT, PHASE

_recorder_in_use: Optional[_recorder.Recorder] = None
_at_first_event: List[Callable[[], None]] = []
_encoded: Dict[str, bytes] = {}
_facts = itertools.count(1)


def _ready() -> Optional[_recorder.Recorder]:
    """The recorder; at the first call that finds it recording, the queued settings go first."""
    global _recorder_in_use
    if _recorder_in_use is None:
        recorder = _recorder.active()
        if recorder is None:
            return None
        _recorder_in_use = recorder
        for action in list(_at_first_event):
            quietly(action)
    return _recorder_in_use


def forget() -> None:
    """Recording ended, or this is another process now: a later one is found anew."""
    global _recorder_in_use
    _recorder_in_use = None


os.register_at_fork(after_in_child=forget)


def text(value: str) -> bytes:
    """Encoded once for each name: the same few names come at every step."""
    found = _encoded.get(value)
    if found is None:
        if len(_encoded) > 100_000:
            _encoded.clear()
        found = _encoded[value] = value.encode("utf-8", "replace")
    return found


def quietly(action: Callable[[], object]) -> None:
    """Our own mistakes stay ours."""
    try:
        action()
    except Exception:  # noqa: BLE001
        if os.environ.get("VRAMSCOPE_DEBUG"):
            import traceback
            traceback.print_exc()


def at_first_event(action: Callable[[], None]) -> None:
    """Runs with the first mark of each recording."""
    _at_first_event.append(action)
    if _recorder_in_use is not None:
        quietly(action)


def mark(kind: int, edge: int, name: str, number: int = -1, detail: Optional[str] = None) -> None:
    recorder = _recorder_in_use or _ready()
    if recorder is not None:
        recorder.mark(kind, edge, text(name), number, None if detail is None else text(detail))  # type: ignore[attr-defined]


def setting(key: str, value: object) -> None:
    recorder = _recorder_in_use or _ready()
    if recorder is not None:
        recorder.setting_text(key, value)


def tag(address: int, size: int, category: str, name: str, layer: Optional[str]) -> None:
    recorder = _recorder_in_use or _ready()
    if recorder is not None:
        recorder.tag(address, size, CATEGORIES[category], text(name), None if not layer else text(layer))  # type: ignore[attr-defined]


def op_source(op: str, file: str, line: int, function: str, layer: Optional[str]) -> None:
    recorder = _recorder_in_use or _ready()
    if recorder is not None:
        recorder.op_source(op.encode("utf-8", "replace"), text(file), line, text(function),  # type: ignore[attr-defined]
                           None if not layer else text(layer))


def fact(kind: str, key: Optional[str] = None, **fields: object) -> None:
    """Something the allocations cannot tell: the analysis makes a finding of it. The same key says it again with newer numbers."""
    setting(f"fact.{kind}.{key if key is not None else next(_facts)}", json.dumps(fields, sort_keys=True, default=str))


class phase:
    """`with phase("save"):`"""

    __slots__ = ("_name", "_detail")

    def __init__(self, name: str, detail: Optional[str] = None) -> None:
        self._name, self._detail = name, detail

    def __enter__(self) -> None:
        mark(PHASE, BEGIN, self._name, -1, self._detail)

    def __exit__(self, *_: object) -> None:
        mark(PHASE, END, self._name)


def instant(kind: int, name: str, number: int = -1, detail: Optional[str] = None) -> None:
    mark(kind, INSTANT, name, number, detail)
