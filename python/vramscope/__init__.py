"""vramscope: every byte on the GPU, accounted for.

    import vramscope
    vramscope.memory_info("GPU:0").current       # cheap, never waits for the device
    print(vramscope.memory_info())               # every device, as a table

    with vramscope.record("out"):                # record from here, in a running interpreter or notebook
        model.fit(...)

`vramscope.tf` has the TensorFlow API and ops, `vramscope.keras` the Keras callback, `vramscope.jax` what a program of JAX needs.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ._memory import MemoryInfo, memory_info, reset_peak
from ._recorder import is_recording
from .marks import mark, scope, step, tag

if TYPE_CHECKING:
    from .attach import record, start, stop
    from .fitting import fit
    from .holders import who_holds
    from .trace import Trace, open  # noqa: A004

__version__ = "0.1.0"
__all__ = ["MemoryInfo", "Trace", "fit", "is_recording", "mark", "memory_info", "open", "record", "reset_peak", "scope", "start", "step",
           "stop", "tag", "who_holds"]

# What most programs never use is loaded when it is asked for: `import vramscope` must cost nothing in a training job.
_LATER = {"start": "attach", "stop": "attach", "record": "attach", "open": "trace", "Trace": "trace", "fit": "fitting", "who_holds": "holders"}
_MODULES = {"tf", "keras", "torch", "jax", "notebook", "tensorboard"}


def __getattr__(name: str) -> object:
    import importlib
    if name in _LATER:
        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'vramscope' has no attribute '{name}'")


def load_ipython_extension(shell: object) -> None:
    """`%load_ext vramscope`"""
    from . import notebook
    notebook.load_ipython_extension(shell)
