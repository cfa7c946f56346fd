"""ctypes bindings of include/vramscope/recorder.h: how this process reports to the recorder that is loaded into it.

The recorder is loaded if the process was started by `vramscope run` (preloaded) or after `vramscope.start()`. Without it, every
call does nothing, so that instrumented code runs the same everywhere.
"""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _files

Name = Union[str, bytes]

MAX_POOLS = 64


class PoolInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 64), ("framework", ctypes.c_char * 16),
        ("device", ctypes.c_int32), ("level", ctypes.c_int32), ("memory", ctypes.c_int32), ("order_exact", ctypes.c_int32),
    ] + [(field, ctypes.c_uint64) for field in (
        "allocs", "frees", "current_bytes", "peak_bytes", "largest_bytes", "region_bytes", "region_peak_bytes", "limit_bytes",
        "ooms", "before_bytes")]


class JaxValue(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("layer", ctypes.c_char_p), ("category", ctypes.c_uint8)]


def _bytes(text: Optional[Name]) -> Optional[bytes]:
    return text.encode("utf-8", "replace") if isinstance(text, str) else text


def _not_direct(*_: Any) -> bool:
    return False


class Recorder:
    """The recorder library of this process.

    `mark` and similar functions take bytes and call C directly, without releasing the interpreter lock: none of them waits, and they are
    called in training loops.
    """

    def __init__(self, library: ctypes.PyDLL) -> None:
        text = ctypes.c_char_p
        prototypes: Dict[str, Any] = {
            "recording": (ctypes.c_int, []),
            "mark": (None, [ctypes.c_int, ctypes.c_int, text, ctypes.c_int64, text]),
            "tag": (None, [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, text, text]),
            "setting": (None, [text, text]),
            "report": (None, [ctypes.c_int, ctypes.POINTER(text), ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.c_int]),
            "python_watches": (None, [text]),
            "op_source": (None, [text, text, ctypes.c_int, text, text]),
            "check": (ctypes.c_int, [text]),
            "attach": (ctypes.c_int, [text, ctypes.c_uint64, text, text, ctypes.c_size_t]),
            "detach": (None, []),
            "pools": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
            "pool_totals": (ctypes.c_int, None),    # called in every step, with arguments that need no conversion
            "reset_peak": (ctypes.c_int, [text]),
            "jax_compiling": (None, [text, ctypes.c_int, ctypes.POINTER(JaxValue), ctypes.c_size_t, ctypes.POINTER(JaxValue), ctypes.c_size_t]),
            "around": (ctypes.py_object, [ctypes.py_object] * 3),
            "direct": (ctypes.py_object, []),
        }
        for name, (result, arguments) in prototypes.items():
            function = getattr(library, "vramscope_" + name, None)
            if function is not None:
                function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self._pools = (PoolInfo * MAX_POOLS)()
        # The same as mark(), op_source() and report_event() with texts as they are; True if that could be done.
        self.mark_directly, self.op_source_directly, self.report_directly = self._direct_calls()

    def _direct_calls(self) -> Tuple[Callable[..., bool], ...]:
        try:
            return self.direct() if self.direct is not None else (_not_direct,) * 3  # type: ignore[attr-defined]
        except (ValueError, SystemError):           # an interpreter without what it needs
            return (_not_direct,) * 3

    def setting_text(self, key: str, value: object) -> None:
        self.setting(_bytes(key), _bytes(str(value)))  # type: ignore[attr-defined]

    def report_event(self, kind: int, texts: List[bytes], numbers: List[int]) -> None:
        self.report(kind, (ctypes.c_char_p * len(texts))(*texts), len(texts),  # type: ignore[attr-defined]
                    (ctypes.c_uint64 * len(numbers))(*numbers), len(numbers))

    def pool_list(self) -> List[PoolInfo]:
        """Totals of all pools; the objects are overwritten by the next call."""
        count = self.pools(self._pools, MAX_POOLS)  # type: ignore[attr-defined]
        return self._pools[:min(count, MAX_POOLS)]


_loaded: Optional[Recorder] = None
_looked_in = -1


def loaded() -> Optional[Recorder]:
    """The recorder if it is already loaded into this process (preloaded, or by start()), else None."""
    global _loaded, _looked_in
    if _loaded is None and _looked_in != os.getpid():
        _looked_in = os.getpid()
        program = ctypes.PyDLL(None)
        if hasattr(program, "vramscope_recording"):
            _loaded = Recorder(program)
    return _loaded


def load() -> Recorder:
    """Loads the library if necessary; an OSError lists the folders that were searched."""
    global _loaded
    recorder = loaded()
    if recorder is None:
        recorder = _loaded = Recorder(ctypes.PyDLL(str(_files.library(_files.INJECT))))
    return recorder


def active() -> Optional[Recorder]:
    """The recorder while it records, else None."""
    recorder = loaded()
    return recorder if recorder is not None and recorder.recording() else None  # type: ignore[attr-defined]


def is_recording() -> bool:
    """Whether this process is being recorded, by `vramscope run` or after start()."""
    return active() is not None
