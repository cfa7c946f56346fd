"""TensorFlow: allocator statistics as functions and as ops.

    import vramscope.tf as vtf
    vtf.get_memory_info("GPU:0")             # {"current", "peak", "limit"}
    with tf.device("/GPU:0"):
        used = vtf.bytes_in_use()            # an op: eager, in tf.function, in a tf.compat.v1 graph

An op gives the value at the moment when TensorFlow runs it. TensorFlow runs an op as soon as its inputs are there: an op without inputs can run
at any point of the function, so say where with `tf.control_dependencies`.
"""
from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Dict, Iterator, Optional, TextIO, Union

import tensorflow as tf

from ._memory import memory_info, parse_device
from ._tensorflow import ops

__all__ = ["bytes_in_use", "bytes_limit", "get_memory_info", "max_bytes_in_use", "memory_logger", "reset_memory_stats"]


def get_memory_info(device: str = "GPU:0") -> Dict[str, int]:
    """What `tf.config.experimental.get_memory_info` gives, and `limit`: the bytes the allocator may take (0: it does not say)."""
    from ._tensorflow import stats
    info = dict(tf.config.experimental.get_memory_info(device))      # TensorFlow's own errors for a wrong device
    read = stats.SOURCE.reader(parse_device(device))
    info["limit"] = read()[2] if read is not None else 0
    return info


def reset_memory_stats(device: str = "GPU:0") -> None:
    """The peak starts again from the current value, as `tf.config.experimental.reset_memory_stats` does."""
    tf.config.experimental.reset_memory_stats(device)


def _refuse_xla(name: str) -> None:
    from tensorflow.python.framework import ops as tf_ops
    from tensorflow.python.ops import control_flow_util
    if not tf.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(tf_ops.get_default_graph()):
        raise NotImplementedError(
            f"vramscope.tf.{name}() cannot run inside a function compiled by XLA (jit_compile=True; Keras 3 compiles with XLA on a GPU "
            "unless told otherwise): XLA plans the function's memory as one block. Read it outside of the function, or compile the model "
            "with jit_compile=False")


def bytes_in_use(name: Optional[str] = None) -> tf.Tensor:
    """Op: bytes that the allocator of this op's device has handed out. int64 scalar on the host; never waits for the device."""
    _refuse_xla("bytes_in_use")
    return ops.module().vramscope_bytes_in_use(name=name)


def max_bytes_in_use(name: Optional[str] = None) -> tf.Tensor:
    """Op: the highest `bytes_in_use` since the start or the last reset."""
    _refuse_xla("max_bytes_in_use")
    return ops.module().vramscope_max_bytes_in_use(name=name)


def bytes_limit(name: Optional[str] = None) -> tf.Tensor:
    """Op: the bytes that the allocator may take."""
    _refuse_xla("bytes_limit")
    return ops.module().vramscope_bytes_limit(name=name)
