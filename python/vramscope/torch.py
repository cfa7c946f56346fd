"""PyTorch with plain training loops. `vramscope run` needs none of this; these functions are for what it cannot detect.

    vramscope.torch.watch(model, optimizer)     # names of layers and parameters at once, also before the first call
"""
from __future__ import annotations

from typing import Any, Dict

from ._hooks import torch_frames, torch_names, torch_optimizers
from ._hooks import torch as _hook
from ._memory import memory_info, reset_peak
from ._rows import MemoryRows as MemoryLog
from ._rows import Row

__all__ = ["MemoryLog", "Row", "memory_info", "reset_peak", "watch"]


def watch(model: Any = None, optimizer: Any = None) -> None:
    """Reports the names of a model's layers, the addresses of its parameters, and the state of an optimizer. Does nothing if
    nothing is recorded. You can call it again, for example after a model was moved or changed."""
    import torch
    if torch_frames.library() is None:
        return
    if torch_names._torch is None:
        _hook.install(torch)
    if model is not None:
        torch_names.name_model(model)
    if optimizer is not None:
        names: Dict[int, Any] = {id(p): torch_names.name_of(p) or ("", "")
                                 for group in optimizer.param_groups for p in group["params"]}
        torch_optimizers.tag_state(optimizer, names)
