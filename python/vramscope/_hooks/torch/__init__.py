"""PyTorch: what the recorder needs to label allocations by itself, steps, and the contents of addresses.

The recorder reads the labels (layer, phase, recomputation) from the Python stack at each allocation. The only code of ours that
runs inside a training step is one call before and one after each optimizer step.
"""
from __future__ import annotations

from typing import Any, Dict

from .. import emit, host_python, lines, torch_compiled, torch_frames, torch_names, torch_optimizers, torch_tags, wrapping

_limits: Dict[int, int] = {}  # device -> bytes; programs set them before they compute, when nothing is recorded yet


def install(torch: Any) -> None:
    torch_frames.watch_all(torch)
    torch_names.install(torch)
    torch_optimizers.install(torch)
    torch_compiled.watch_graph_modules(torch.fx.graph_module)
    wrapping.wrap(torch.utils.data.DataLoader, "__iter__", _epoch_begins)
    for owner in (torch.cuda, torch.cuda.memory):
        wrapping.wrap(owner, "set_per_process_memory_fraction", after=lambda _, ok, *args, **kwargs: _fraction_is_set(torch, ok, *args, **kwargs))
    emit.at_first_event(lambda: _settings(torch))
    emit.at_first_event(_report_limits)
    host_python.start()
    emit.watching(b"pytorch")


def _epoch_begins(loader: Any) -> None:
    torch_tags.tag_dataset(loader.dataset)


def _fraction_is_set(torch: Any, ok: bool, _: object, fraction: float, device: Any = None) -> None:
    if ok:
        index = torch.cuda._utils._get_device_index(device, optional=True)
        _limits[index] = int(fraction * torch.cuda.get_device_properties(index).total_memory)
        _report_limits()


def _report_limits() -> None:
    for device, size in _limits.items():
        emit.report("pool_limit", device=device, bytes=size)


def _settings(torch: Any) -> None:
    emit.setting("torch.version", torch.__version__)
    lines.report_folders()
    for name in ("cuda", "hip"):
        version = getattr(torch.version, name, None)
        if version:
            emit.setting(f"torch.{name}", version)
    backend = getattr(torch.cuda, "get_allocator_backend", None)
    # Asking before CUDA is initialized would be too early for a pluggable allocator.
    if backend is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        emit.setting("torch.allocator", backend())
