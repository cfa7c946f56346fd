"""PyTorch with plain training loops. `vramscope run` needs none of this; these functions are for what it cannot detect.

    vramscope.torch.watch(model, optimizer)     # names of layers and parameters at once, also before the first call
    vramscope.torch.largest_batch(train_step, sample_batch, on="24GiB", keep=[model, optimizer])
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence

from ._hooks import torch_frames, torch_names, torch_optimizers
from ._hooks import torch as _hook
from ._memory import memory_info, reset_peak
from ._rows import MemoryRows as MemoryLog
from ._rows import Row

if TYPE_CHECKING:
    from ._largest import LargestBatch

__all__ = ["MemoryLog", "Row", "largest_batch", "memory_info", "reset_peak", "watch"]


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


def largest_batch(train_step: Callable[[Any], object], sample_batch: Any, on: Optional[str] = None, limit: Optional[str] = None, confirm: bool = True,
                  keep: Sequence[Any] = ()) -> "LargestBatch":
    """The largest batch with which `train_step(batch)` runs on a device, from a few steps at two small batches and one at the result.

    train_step: forward pass, backward pass and optimizer step for one batch.
    sample_batch: a tensor, or tensors in tuples, lists and dicts; its samples are repeated for larger batches.
    on: a size such as "24GiB", or a card such as "H100-80GB". limit: of PyTorch's pool, instead of a device.
    confirm: train one step with the batch that was found, which this machine must be able to do.
    keep: model, optimizer and whatever else has a `state_dict`, to get its state back.
    """
    from . import _largest
    kept = [(one, _on_host(one.state_dict())) for one in keep]
    try:
        return _largest.find(lambda size: train_step(_largest.resized(sample_batch, size, lambda tensor, rows: tensor[rows])),
                             _largest.samples_in(sample_batch), on, limit, confirm, _outside_of_the_pool)
    finally:
        for one, state in kept:
            one.load_state_dict(state)


def _outside_of_the_pool() -> int:
    """Bytes of the GPU in use that PyTorch's pool does not hold."""
    import torch
    if not torch.cuda.is_initialized():
        return 0
    reserved, device = max((torch.cuda.memory_reserved(device), device) for device in range(torch.cuda.device_count()))
    free, total = torch.cuda.mem_get_info(device)
    return max(0, total - free - reserved)


def _on_host(state: Any) -> Any:
    """A copy that takes no memory of the device."""
    import torch
    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return {key: _on_host(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_on_host(value) for value in state)
    return state
