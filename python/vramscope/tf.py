"""TensorFlow: allocator statistics as functions and as ops.

    import vramscope.tf as vtf
    vtf.get_memory_info("GPU:0")             # {"current", "peak", "limit"}
    with tf.device("/GPU:0"):
        used = vtf.bytes_in_use()            # an op: eager, in tf.function, in a tf.compat.v1 graph

An op returns the value at the moment TensorFlow runs it. TensorFlow runs an op as soon as its inputs are ready, so an op without inputs can run
at any point of the function: use `tf.control_dependencies` to control when it runs.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Sequence

import tensorflow as tf

from ._comparison import Comparison
from ._devices import parse_device
from ._memory import reset_recorder
from ._tensorflow import ops
from ._tensorflow.logger import memory_logger

__all__ = ["bytes_in_use", "bytes_limit", "compare", "default_device", "get_memory_info", "max_bytes_in_use", "memory_logger",
           "reset_memory_stats", "variants"]

Variant = Callable[[int, Callable[..., None]], object]


def get_memory_info(device: str = "GPU:0") -> Dict[str, int]:
    """Returns what `tf.config.experimental.get_memory_info` does, plus `limit`: the bytes that the allocator may take (0: unknown)."""
    from ._tensorflow import stats
    info = dict(tf.config.experimental.get_memory_info(_as_tensorflow_names(device)))      # its own errors for a wrong device
    reader = stats.SOURCE.reader(parse_device(device))      # which has read already
    info["limit"] = reader.buffer[2] if reader is not None else 0
    return info


def reset_memory_stats(device: str = "GPU:0") -> None:
    """Resets the peak to the current value, like `tf.config.experimental.reset_memory_stats`."""
    tf.config.experimental.reset_memory_stats(_as_tensorflow_names(device))
    reset_recorder(device)


def _as_tensorflow_names(device: Any) -> Any:
    """TensorFlow's statistics accept only logical devices. An unknown name is passed on, for TensorFlow's own error."""
    try:
        return str(parse_device(device))
    except ValueError:
        return device


def _refuse_xla(name: str) -> None:
    from tensorflow.python.framework import ops as tf_ops
    from tensorflow.python.ops import control_flow_util
    if not tf.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(tf_ops.get_default_graph()):
        raise NotImplementedError(
            f"vramscope.tf.{name}() cannot run inside a function compiled by XLA (jit_compile=True, the default of Keras 3 on a "
            "GPU): XLA plans the function's memory as one block; read it outside the function, or compile the model "
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


def default_device() -> str:
    """The first GPU, or the CPU if there is none."""
    return "GPU:0" if tf.config.list_physical_devices("GPU") else "CPU:0"


def compare(variants: Mapping[str, Variant], steps: int = 20) -> Comparison:
    """Compares ways of training: runs each variant in a fresh process and returns one table (peak, steady peak, time per step, samples per
    second) and one plot.

        if __name__ == "__main__":
            comparison = vramscope.tf.compare(vramscope.tf.variants(build, batch), steps=20)
            print(comparison)
            comparison.plot("variants.svg")

    A variant is a function `train(steps, step_done)` that trains for that many steps and calls `step_done(samples)` after each, with the number of samples
    in the step, or `step_done()`. Define it at the top level of a module, so that another process can import it (as for `multiprocessing`).
    `variants()` creates the usual ones.
    """
    from ._tensorflow import measure
    return measure.compare(variants, steps)


def variants(build: Callable[[], Any], batch: Callable[[], Any], only: Optional[Sequence[str]] = None) -> Dict[str, Variant]:
    """The usual ways to train one Keras model, for `compare`: eager, function, XLA, mixed precision (mixed_bfloat16), fit, custom loop,
    gradient accumulation (four parts of a batch).

    build: returns the compiled model. batch: returns one batch (x, y). Both at the top level of a module. only: the names of those wanted.
    """
    from ._tensorflow import ways
    return ways.choose(build, batch, only)
