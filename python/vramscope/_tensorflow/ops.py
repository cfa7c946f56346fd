"""Loads libvramscope_tfops.so into TensorFlow, once."""
from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from .. import _files


@lru_cache(maxsize=None)
def module() -> Any:
    """The Python module with the generated op functions."""
    import tensorflow as tf
    return tf.load_op_library(str(_files.library(_files.TFOPS)))


@lru_cache(maxsize=None)
def functions() -> ctypes.PyDLL:
    """The C functions of the same file."""
    module()
    library = ctypes.PyDLL(str(_files.library(_files.TFOPS)))
    library.vramscope_tf_clear_stats.argtypes = [ctypes.c_uint64]
    return library


@lru_cache(maxsize=None)
def allocator(device: str) -> int:
    """Address of a device's allocator: found once with an op placed on the device, then valid for the life of the process.

    All sessions of a process share the allocator of a device with eager mode, which can run an op even if the program has disabled it.
    """
    import tensorflow as tf
    from tensorflow.python.eager import context
    with tf.init_scope(), context.eager_mode(), tf.device(device):
        return int(module().vramscope_allocator())
