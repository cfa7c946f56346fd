"""How hooks report to the recorder.

Importing a framework reports nothing, because a process that never computes must leave no trace. Settings are therefore queued and
sent with the first mark.
"""
from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional

from .. import _recorder
from .._schema import BEGIN, CATEGORIES, END, INSTANT, OP_ROLES, PHASE, REPORTS

_recorder_in_use: Optional[_recorder.Recorder] = None
_at_first_event: List[Callable[[], None]] = []
_encoded: Dict[str, bytes] = {}


def _ready() -> Optional[_recorder.Recorder]:
    """The recorder. The first call that finds it recording sends the queued settings."""
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
    """Called when recording ends and after a fork: a later recorder is looked up again."""
    global _recorder_in_use
    _recorder_in_use = None


os.register_at_fork(after_in_child=forget)


def text(value: str) -> bytes:
    """Encoded once per name, because the same few names occur in every step."""
    found = _encoded.get(value)
    if found is None:
        if len(_encoded) > 100_000:
            _encoded.clear()
        found = _encoded[value] = value.encode("utf-8", "replace")
    return found


def quietly(action: Callable[[], object]) -> None:
    """Errors of ours must not reach the program."""
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
    if recorder is not None and not recorder.mark_directly(kind, edge, name, number, detail):
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
    if recorder is not None and not recorder.op_source_directly(op, file, line, function, layer or None):
        recorder.op_source(op.encode("utf-8", "replace"), text(file), line, text(function),  # type: ignore[attr-defined]
                           None if not layer else text(layer))


def report(event: str, **fields: Any) -> None:
    """Reports something that allocations cannot reveal: an event of schema/trace/schema.json with all its fields. Reporting the same
    line of source code again updates it."""
    recorder = _recorder_in_use or _ready()
    if recorder is not None:
        kind, texts, numbers = REPORTS[event]
        said, counts = [str(fields[name]) for name in texts], [int(fields[name]) for name in numbers]
        if not recorder.report_directly(kind, *said, *counts):
            recorder.report_event(kind, [each.encode("utf-8", "replace") for each in said], counts)


def variable_op(op: str, role: str, category: str, variable: str) -> None:
    """Reports what an op of a graph computes for a variable."""
    report("variable_op", op=op, role=OP_ROLES[role], category=CATEGORIES[category], variable=variable)


def watching(framework: bytes) -> None:
    """Reports that this framework has hooks; written to the trace once the framework computes."""
    recorder = _recorder.loaded()
    if recorder is not None:
        recorder.python_watches(framework)  # type: ignore[attr-defined]


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
