"""Where a tensor lies and how many bytes it has, for any framework, without a copy.

DLPack is the way in that every framework offers; the capsule is dropped at once, so that nothing is kept alive.
"""
from __future__ import annotations

import ctypes
from typing import Any, Tuple


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def of(tensor: Any) -> Tuple[int, int]:
    """(address, bytes); TypeError for what has no address (symbolic tensors, strings, resources)."""
    try:
        if hasattr(tensor, "data_ptr"):                                  # torch
            return tensor.data_ptr(), tensor.numel() * tensor.element_size()
        return _of_capsule(_capsule(tensor))
    except Exception as error:
        raise TypeError(f"{type(tensor).__name__} has no address that can be read: {error}") from None


def _capsule(tensor: Any) -> object:
    import sys
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        if hasattr(tensor, "_value") and hasattr(tensor, "path"):        # a Keras 3 variable around the framework's own
            tensor = tensor._value
        if hasattr(tensor, "read_value"):                                # a tf.Variable: reading shares its buffer
            tensor = tensor.read_value()
        if isinstance(tensor, tensorflow.Tensor):
            kind = tensor.dtype
            # Asked for the address of a handle, a string or a variant, some releases end the process.
            if not (kind.is_floating or kind.is_integer or kind.is_complex or kind.is_bool) or kind.is_quantized:
                raise TypeError(f"its type is {kind.name}")
            return tensorflow.experimental.dlpack.to_dlpack(tensor)
    return tensor.__dlpack__()


def _of_capsule(capsule: object) -> Tuple[int, int]:
    tensor = ctypes.cast(_pointer(capsule, b"dltensor"), ctypes.POINTER(_DLTensor)).contents
    count = 1
    for axis in range(tensor.ndim):
        count *= tensor.shape[axis]
    return tensor.data + tensor.byte_offset, count * ((tensor.bits * tensor.lanes + 7) // 8)
