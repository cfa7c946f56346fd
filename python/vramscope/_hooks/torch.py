"""PyTorch: what the recorder needs to know to label allocations by itself, steps, and what lives at which address.

The labels (layer, phase, recomputation) are read off the Python stack by the recorder at each allocation, so nothing of ours runs
inside the training step but one call before and one after each optimizer step.
"""
from __future__ import annotations

from typing import Any

from . import emit, torch_compiled, torch_frames, torch_names, torch_optimizers, torch_tags, wrapping


def install(torch: Any) -> None:
    torch_frames.watch_all(torch)
    torch_names.install(torch)
    torch_optimizers.install(torch)
    torch_compiled.watch_graph_modules(torch.fx.graph_module)
    wrapping.wrap(torch.utils.data.DataLoader, "__iter__", _before_epoch)
    emit.at_first_event(lambda: _settings(torch))


def _before_epoch(original: Any) -> Any:
    def __iter__(self: Any) -> Any:
        emit.quietly(lambda: torch_tags.tag_dataset(self.dataset))
        return original(self)
    return __iter__


def _settings(torch: Any) -> None:
    emit.setting("torch.version", torch.__version__)
    for name in ("cuda", "hip"):
        version = getattr(torch.version, name, None)
        if version:
            emit.setting(f"torch.{name}", version)
    backend = getattr(torch.cuda, "get_allocator_backend", None)
    # Asking before CUDA is initialized would be too early for a pluggable allocator.
    if backend is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        emit.setting("torch.allocator", backend())
