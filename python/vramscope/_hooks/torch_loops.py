"""Puts our marks into the training loops of others, and watches parts of PyTorch that are imported late."""
from __future__ import annotations

import os
from typing import Any

from .. import _recorder
from . import emit, ranks, torch_compiled, torch_frames, wrapping


def install(module: Any) -> None:
    _INSTALL[module.__name__](module)


def _lightning(connector: Any) -> None:
    """The callbacks of other packages are collected by one function: ours go there too, installed as a package or not."""
    def make(original: Any) -> Any:
        def external_callbacks(*args: Any, **options: Any) -> Any:
            found = list(original(*args, **options))
            from ..lightning import MarkCallback
            if not any(isinstance(callback, MarkCallback) for callback in found):
                found.append(MarkCallback())
            return found
        return external_callbacks
    wrapping.wrap(connector, "_configure_external_callbacks", make) or wrapping.wrap(
        connector, "_load_external_callbacks", make)


def _transformers(trainer: Any) -> None:
    from ..transformers import MarkCallback
    defaults = getattr(trainer, "DEFAULT_CALLBACKS", None)
    if isinstance(defaults, list) and MarkCallback not in defaults:
        defaults.append(MarkCallback)


def _process_group(distributed: Any) -> None:
    """mp.spawn gives a rank to nobody but this function."""
    def make(original: Any) -> Any:
        def init_process_group(*args: Any, **options: Any) -> Any:
            result = original(*args, **options)
            emit.quietly(lambda: ranks.tell_distributed(distributed))
            return result
        return init_process_group
    wrapping.wrap(distributed, "init_process_group", make)


_LOADER_WORKER = "DataLoader worker"


def _loader_worker(worker: Any) -> None:
    """A worker inherits the rank of its parent in the environment, and is none. It is told so there, because a worker that
    never allocates must leave no trace."""
    imported_in = os.getpid()

    def make(original: Any) -> Any:
        def _worker_loop(*args: Any, **options: Any) -> Any:
            os.environ["VRAMSCOPE_ROLE"] = _LOADER_WORKER
            if os.getpid() == imported_in:      # spawned, not forked: it may have allocated while its data set was unpickled
                emit.quietly(_tell_role_if_recorded)
            return original(*args, **options)
        return _worker_loop
    wrapping.wrap(worker, "_worker_loop", make)


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
