"""The address of a variable, through TensorFlow's C API.

Reading a variable in Python creates tensors. That takes 0.1 ms, and each tensor uses up a number of TensorFlow's, which then appears in the names of
functions in its messages ("__inference_step_1880"). The C API reads it without either.
"""
from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple, Optional, Tuple

_TESTED = [(2, 16), (2, 17), (2, 18), (2, 19), (2, 20), (2, 21)]       # others read variables in Python
_POINTER = ctypes.c_void_p
_FUNCTIONS = {
    "TF_NewStatus": (_POINTER, []), "TF_GetCode": (ctypes.c_int, [_POINTER]), "TF_DeleteStatus": (None, [_POINTER]),
    "TFE_NewOp": (_POINTER, [_POINTER, ctypes.c_char_p, _POINTER]), "TFE_DeleteOp": (None, [_POINTER]),
    "TFE_OpAddInput": (None, [_POINTER, _POINTER, _POINTER]), "TFE_OpSetAttrType": (None, [_POINTER, ctypes.c_char_p, ctypes.c_int]),
    "TFE_Execute": (None, [_POINTER, _POINTER, _POINTER, _POINTER]), "TFE_DeleteTensorHandle": (None, [_POINTER]),
    "TFE_TensorHandleDevicePointer": (_POINTER, [_POINTER, _POINTER]),
    "TFE_TensorHandleDeviceMemorySize": (ctypes.c_size_t, [_POINTER, _POINTER]),
}


class _Api(NamedTuple):
    library: Any
    context: int
    handle: int             # where a tensor of Python has its handle


_api: Optional[_Api] = None
_refused = False


def place(variable: Any) -> Optional[Tuple[int, int]]:
    """(address, bytes) of a tf.Variable with a numeric type; None if variables cannot be read this way. TypeError: this one has no value."""
    global _api, _refused
    handle = getattr(variable, "handle", None)
    if _refused or not hasattr(handle, "_numpy"):
        return None
    if _api is None:
        try:
            _api = _open(handle)
        except Exception:  # noqa: BLE001 (a TensorFlow that is built in another way)
            _api = None
        if _api is None:
            _refused = True
            return None
    library, context, offset = _api
    found = _read(library, context, ctypes.c_uint64.from_address(id(handle) + offset).value, variable.dtype.base_dtype.as_datatype_enum)
    if found is None:
        raise TypeError("it has no value yet")
    return found


def _read(library: Any, context: int, handle: int, dtype: int) -> Optional[Tuple[int, int]]:
    status = library.TF_NewStatus()
    op = library.TFE_NewOp(context, b"ReadVariableOp", status)
    values, count = (_POINTER * 1)(), ctypes.c_int(1)
    try:
        if not op:
            return None
        library.TFE_OpAddInput(op, handle, status)
        library.TFE_OpSetAttrType(op, b"dtype", dtype)
        if library.TF_GetCode(status) == 0:
            library.TFE_Execute(op, values, ctypes.byref(count), status)
        if library.TF_GetCode(status) != 0 or not values[0]:        # not initialized, for example
            return None
        address = library.TFE_TensorHandleDevicePointer(values[0], status)
        size = library.TFE_TensorHandleDeviceMemorySize(values[0], status)
        return (address or 0, size) if library.TF_GetCode(status) == 0 else None
    finally:
        if values[0]:
            library.TFE_DeleteTensorHandle(values[0])
        if op:
            library.TFE_DeleteOp(op)
        library.TF_DeleteStatus(status)


def _open(handle: Any) -> Optional[_Api]:
    import tensorflow as tf
    from tensorflow.python.eager import context
    if tuple(int(part) for part in tf.__version__.split(".")[:2]) not in _TESTED:
        return None
    # A tensor of Python holds its handle, and then its number.
    numbers = [place for place in range(object.__basicsize__ + 8, type(handle).__basicsize__ - 7, 8)
               if ctypes.c_int64.from_address(id(handle) + place).value == handle._id]
    if len(numbers) != 1:
        return None
    library = _library(os.path.join(os.path.dirname(tf.__file__), "libtensorflow_cc.so.2"))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _Api(library, get(context.context()._handle, None), numbers[0] - 8)


def _library(path: str) -> Any:
    """TensorFlow's own, which is loaded already."""
    library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
