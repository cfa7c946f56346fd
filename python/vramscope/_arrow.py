"""A table that any Arrow library reads without a copy in Python: the Arrow C stream interface in ctypes.

Columns are int64, float64, bool (as uint8 bits) or text; None is null. One batch.
"""
from __future__ import annotations

import ctypes
import struct
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

_NULLABLE = 2


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))
_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))
_GetLastError = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))

_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))), ("dictionary", ctypes.c_void_p),
    ("release", _ReleaseSchema), ("private_data", ctypes.c_void_p)]
_Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p), ("release", _ReleaseArray), ("private_data", ctypes.c_void_p)]
_Stream._fields_ = [
    ("get_schema", _GetSchema), ("get_next", _GetNext), ("get_last_error", _GetLastError), ("release", _ReleaseStream),
    ("private_data", ctypes.c_void_p)]


def _format(values: Sequence[Any]) -> bytes:
    kinds = {type(value) for value in values if value is not None}
    if not kinds or kinds - {bool, int, float}:
        return b"u"
    if float in kinds:
        return b"g"
    return b"b" if kinds == {bool} else b"l"


def _bits(flags: Sequence[bool]) -> bytes:
    out = bytearray((len(flags) + 7) // 8)
    for index, flag in enumerate(flags):
        if flag:
            out[index >> 3] |= 1 << (index & 7)
    return bytes(out)


def _signed(value: int) -> int:
    """The trace has a few unsigned columns (addresses); all ones means none there."""
    return value if -(1 << 63) <= value < (1 << 63) else value - (1 << 64)


def _buffers(format_: bytes, values: Sequence[Any]) -> List[bytes]:
    valid = _bits([value is not None for value in values])
    if format_ == b"l":
        return [valid, struct.pack(f"<{len(values)}q", *(0 if v is None else _signed(int(v)) for v in values))]
    if format_ == b"g":
        return [valid, struct.pack(f"<{len(values)}d", *(0.0 if v is None else float(v) for v in values))]
    if format_ == b"b":
        return [valid, _bits([bool(v) for v in values])]
    texts = ["" if v is None else v if isinstance(v, str) else repr(v) for v in values]
    encoded = [text.encode("utf-8", "replace") for text in texts]
    offsets = [0]
    for text in encoded:
        offsets.append(offsets[-1] + len(text))
    return [valid, struct.pack(f"<{len(offsets)}i", *offsets), b"".join(encoded)]


# What the consumer holds on to: kept here until it calls release.
_kept: Dict[int, Any] = {}


def _release_children(parent: Any) -> None:
    """A child that the consumer took for itself has no release function here any more."""
    for index in range(parent.n_children):
        child = parent.children[index]
        if child.contents.release:
            child.contents.release(child)


@_ReleaseSchema
def _release_schema(schema: Any) -> None:
    _release_children(schema.contents)
    _kept.pop(schema.contents.private_data, None)
    schema.contents.release = _ReleaseSchema()


@_ReleaseArray
def _release_array(array: Any) -> None:
    _release_children(array.contents)
    _kept.pop(array.contents.private_data, None)
    array.contents.release = _ReleaseArray()


@_ReleaseStream
def _release_stream(stream: Any) -> None:
    _kept.pop(stream.contents.private_data, None)
    stream.contents.release = _ReleaseStream()


_next_key = 0


def _keep(*things: Any) -> int:
    global _next_key
    _next_key += 1
    _kept[_next_key] = things
    return _next_key


def _fill_schema(schema: Any, format_: bytes, name: bytes, children: Sequence[Any]) -> None:
    pointers = (ctypes.POINTER(_Schema) * max(1, len(children)))(*(ctypes.pointer(child) for child in children))
    schema.format, schema.name, schema.metadata, schema.flags = format_, name, None, _NULLABLE
    schema.n_children, schema.children = len(children), pointers
    schema.dictionary, schema.release = None, _release_schema
    schema.private_data = _keep(format_, name, children, pointers)


def _fill_array(array: Any, length: int, nulls: int, buffers: Sequence[Optional[bytes]], children: Sequence[Any]) -> None:
    copies = [None if b is None else ctypes.create_string_buffer(b, max(1, len(b))) for b in buffers]
    addresses = (ctypes.c_void_p * max(1, len(copies)))(*(None if c is None else ctypes.addressof(c) for c in copies))
    pointers = (ctypes.POINTER(_Array) * max(1, len(children)))(*(ctypes.pointer(child) for child in children))
    array.length, array.null_count, array.offset = length, nulls, 0
    array.n_buffers, array.buffers = len(copies), addresses
    array.n_children, array.children = len(children), pointers
    array.dictionary, array.release = None, _release_array
    array.private_data = _keep(copies, addresses, children, pointers)


_Destructor = ctypes.CFUNCTYPE(None, ctypes.py_object)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_STREAM_NAME = b"arrow_array_stream"


class Table:
    """Columns by name; also rows. `pyarrow.table(t)`, `polars.DataFrame(t)`, `pandas` through pyarrow, DuckDB: they ask for the stream."""

    def __init__(self, rows: Sequence[Dict[str, Any]]) -> None:
        names = dict.fromkeys(name for row in rows for name in row)
        self.columns: Dict[str, List[Any]] = {name: [row.get(name) for row in rows] for name in names}
        self.num_rows = len(rows)

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        for values in zip(*self.columns.values()):
            yield dict(zip(self.columns, values))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        formats: List[Tuple[str, bytes]] = [(name, _format(values)) for name, values in self.columns.items()]
        sent = [False]

        def get_schema(_: Any, out: Any) -> int:
            children = [_Schema() for _ in formats]
            for child, (name, format_) in zip(children, formats):
                _fill_schema(child, format_, name.encode(), [])
            _fill_schema(out.contents, b"+s", b"", children)
            return 0

        def get_next(_: Any, out: Any) -> int:
            if sent[0]:
                out.contents.release = _ReleaseArray()       # the end of the stream
                return 0
            sent[0] = True
            children = [_Array() for _ in formats]
            for child, (name, format_) in zip(children, formats):
                values = self.columns[name]
                _fill_array(child, len(values), sum(v is None for v in values), _buffers(format_, values), [])
            _fill_array(out.contents, self.num_rows, 0, [None], children)
            return 0

        stream = _Stream()
        callbacks = (_GetSchema(get_schema), _GetNext(get_next), _GetLastError(lambda _: None))
        stream.get_schema, stream.get_next, stream.get_last_error = callbacks
        stream.release = _release_stream
        stream.private_data = _keep(stream, callbacks)
        return _new_capsule(ctypes.addressof(stream), _STREAM_NAME, None)
