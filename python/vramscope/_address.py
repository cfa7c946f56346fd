"""Address and size of a tensor of any framework, without a copy.

Every framework supports DLPack. The capsule is dropped at once, so that nothing is kept alive.
"""
from __future__ import annotations

import ctypes
import sys
import weakref
from typing import Any, Dict, Optional, Tuple


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def of(tensor: Any) -> Tuple[int, int]:
    """Returns (address, bytes). Raises TypeError for objects without an address (symbolic tensors, strings, resources)."""
    try:
        if hasattr(tensor, "data_ptr"):                                  # torch
            return tensor.data_ptr(), tensor.numel() * tensor.element_size()
        if hasattr(tensor, "_value") and hasattr(tensor, "path"):        # a Keras 3 variable around the framework's own
            tensor = tensor._value
        if id(tensor) in _read_by_copy:
            found = _read_by_copy[id(tensor)]
            if found is None:
                raise TypeError("reading it would copy it")
            return found
        return _of_variable(tensor) or _of_capsule(_capsule(tensor))
    except Exception as error:
        raise TypeError(f"{type(tensor).__name__} has no address that can be read: {error}") from None


# Once rows of a tf.Variable were read or written, TensorFlow hands out copies of it. Such a variable is never read: it stays where it was.
_read_by_copy: Dict[int, Optional[Tuple[int, int]]] = {}


def about_to_be_read_by_copy(variable: Any) -> None:
    """The last moment to see where a variable lies without a copy of it."""
    if id(variable) in _read_by_copy:
        return
    try:
        place: Optional[Tuple[int, int]] = of(variable)
    except TypeError:
        place = None
    _read_by_copy[id(variable)] = place
    weakref.finalize(variable, _read_by_copy.pop, id(variable), None).atexit = False


def _of_variable(tensor: Any) -> Optional[Tuple[int, int]]:
    """Of a tf.Variable outside of all graphs."""
    if "tensorflow" not in sys.modules or not hasattr(tensor, "read_value") or not _has_address(tensor.dtype):
        return None
    from ._tensorflow import variables
    return variables.place(tensor)


def _has_address(kind: Any) -> bool:
    """Asked for the address of a handle, a string or a variant, some releases of TensorFlow end the process."""
    return (kind.is_floating or kind.is_integer or kind.is_complex or kind.is_bool) and not kind.is_quantized


def _read(variable: Any) -> Any:
    """Shares the variable's buffer. No tape may see it: it would keep the buffer."""
    from tensorflow.python.eager import record
    with record.stop_recording():
        return variable.read_value()


def _capsule(tensor: Any) -> object:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        if hasattr(tensor, "read_value"):                                # a tf.Variable
            tensor = _read(tensor)
        if isinstance(tensor, tensorflow.Tensor):
            if not _has_address(tensor.dtype):
                raise TypeError(f"its type is {tensor.dtype.name}")
            return tensorflow.experimental.dlpack.to_dlpack(tensor)
    return tensor.__dlpack__()


def _of_capsule(capsule: object) -> Tuple[int, int]:
    tensor = ctypes.cast(_pointer(capsule, b"dltensor"), ctypes.POINTER(_DLTensor)).contents
    count = 1
    for axis in range(tensor.ndim):
        count *= tensor.shape[axis]
    return tensor.data + tensor.byte_offset, count * ((tensor.bits * tensor.lanes + 7) // 8)
