"""PyTorch, plain training loops. Under `vramscope run` nothing is needed; this is for what cannot be seen from outside.

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
    """Tells the recorder the names of a model's layers, where its parameters lie, and an optimizer's state. Does nothing when
    nothing is recorded. Safe to call again, for example after a model was moved or changed."""
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
