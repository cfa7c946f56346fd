"""Adds our marks to the training loops of other packages, and watches parts of PyTorch that are imported late."""
from __future__ import annotations

import os
from typing import Any

from .. import _recorder
from . import emit, torch_compiled, torch_frames, torch_ranks, wrapping


def install(module: Any) -> None:
    _INSTALL[module.__name__](module)


def _lightning(connector: Any) -> None:
    """Lightning collects the callbacks of other packages with one function; ours are added there, whether vramscope is installed
    as a package or not."""
    def collected(token: None, ok: bool, found: Any, *_: Any, **__: Any) -> None:
        from ..lightning import MarkCallback
        if ok and isinstance(found, list) and not any(isinstance(callback, MarkCallback) for callback in found):
            found.append(MarkCallback())

    for name in ("_configure_external_callbacks", "_load_external_callbacks"):
        if wrapping.wrap(connector, name, after=collected):
            return


def _transformers(trainer: Any) -> None:
    from ..transformers import MarkCallback
    defaults = getattr(trainer, "DEFAULT_CALLBACKS", None)
    if isinstance(defaults, list) and MarkCallback not in defaults:
        defaults.append(MarkCallback)


def _process_group(distributed: Any) -> None:
    """mp.spawn passes the rank only to this function."""
    def initialized(token: None, ok: bool, *_: Any, **__: Any) -> None:
        if ok:
            torch_ranks.initialized(distributed)

    wrapping.wrap(distributed, "init_process_group", after=initialized)


_LOADER_WORKER = "DataLoader worker"


def _loader_worker(worker: Any) -> None:
    """A worker inherits the rank of its parent through the environment but has none itself. The environment records this,
    because a worker that never allocates must leave no trace."""
    imported_in = os.getpid()

    def begins(*_: Any, **__: Any) -> None:
        os.environ["VRAMSCOPE_ROLE"] = _LOADER_WORKER
        if os.getpid() == imported_in:          # spawned, not forked: it may have allocated while its data set was unpickled
            _tell_role_if_recorded()

    wrapping.wrap(worker, "_worker_loop", begins)


def _tell_role_if_recorded() -> None:
    recorder = _recorder.loaded()
    if recorder is not None and recorder.pool_list():
        emit.setting("role", _LOADER_WORKER)


_INSTALL = {
    "lightning.pytorch.trainer.connectors.callback_connector": _lightning,
    "pytorch_lightning.trainer.connectors.callback_connector": _lightning,
    "transformers.trainer": _transformers,
    "torch._dynamo.convert_frame": torch_frames.watch_compile,
    "torch._dynamo.output_graph": torch_compiled.watch_dynamo,
    "torch._functorch._aot_autograd.runtime_wrappers": torch_compiled.watch_training,
    "torch._inductor.codecache": torch_compiled.watch_inductor,
    "torch.distributed.distributed_c10d": _process_group,
    "torch.nn.parallel.distributed": torch_frames.watch_ddp,
    "torch.utils.checkpoint": torch_frames.watch_checkpoint,
    "torch.utils.data._utils.worker": _loader_worker,
    "torch.distributed.fsdp._fully_shard._fsdp_param_group": torch_frames.watch_fsdp,
}
