"""Makes NumPy place every array at an address that is not a multiple of 64.

TensorFlow shares the memory of an array that happens to be aligned, and copies any other. Where malloc puts an array depends on everything
that was allocated before, so the counter of the same program differs from run to run by the arrays that it was given. With this, all of
them are copied, and counted.
"""
import ctypes

import numpy as np

_ALIGNED, _OFF = 64, 16
_SET_HANDLER = 304              # PyDataMem_SetHandler in NumPy's table of functions
_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.malloc_usable_size.restype = ctypes.c_size_t
_libc.malloc_usable_size.argtypes = _libc.free.argtypes = [ctypes.c_void_p]


def _allocate(context, size):
    return (_libc.aligned_alloc(_ALIGNED, -(-(size + _OFF) // _ALIGNED) * _ALIGNED) or -_OFF) + _OFF


def _allocate_zeros(context, count, size):
    address = _allocate(context, count * size)
    return ctypes.memset(address, 0, count * size)


def _free(context, address, size):
    if address:
        _libc.free(address - _OFF)


def _resize(context, address, size):
    new = _allocate(context, size)
    if address:
        ctypes.memmove(new, address, min(size, _libc.malloc_usable_size(address - _OFF) - _OFF))
        _free(context, address, 0)
    return new


_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t
_FUNCTIONS = [("malloc", ctypes.CFUNCTYPE(_POINTER, _POINTER, _SIZE), _allocate),
              ("calloc", ctypes.CFUNCTYPE(_POINTER, _POINTER, _SIZE, _SIZE), _allocate_zeros),
              ("realloc", ctypes.CFUNCTYPE(_POINTER, _POINTER, _POINTER, _SIZE), _resize),
              ("free", ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _SIZE), _free)]


class _Handler(ctypes.Structure):      # PyDataMem_Handler
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", _POINTER), *((name, kind) for name, kind, _ in _FUNCTIONS)]


_handler = _Handler(b"never aligned", 1, None, *(kind(function) for _, kind, function in _FUNCTIONS))
for _immortal in (_handler, *(getattr(_handler, name) for name, _, _ in _FUNCTIONS)):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_immortal))     # the last arrays are freed when this module is gone


def never_aligned():
    """For the arrays that this thread makes from now on."""
    new_capsule, pointer_of = (ctypes.PyDLL(None)[f"PyCapsule_{name}"] for name in ("New", "GetPointer"))
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]
    pointer_of.restype, pointer_of.argtypes = _POINTER, [ctypes.py_object, ctypes.c_char_p]
    core = getattr(np, "_core", None) or np.core
    table = ctypes.cast(pointer_of(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(_POINTER))
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])(new_capsule(ctypes.addressof(_handler), b"mem_handler", None))
    assert np.empty(1 << 16).ctypes.data % _ALIGNED == _OFF
