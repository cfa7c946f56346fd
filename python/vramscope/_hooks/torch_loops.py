"""Puts our marks into the training loops of others, and watches parts of PyTorch that are imported late."""
from __future__ import annotations

from typing import Any

from . import torch_frames, wrapping


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


_INSTALL = {
    "lightning.pytorch.trainer.connectors.callback_connector": _lightning,
    "pytorch_lightning.trainer.connectors.callback_connector": _lightning,
    "transformers.trainer": _transformers,
    "torch._dynamo.convert_frame": torch_frames.watch_compile,
    "torch.nn.parallel.distributed": torch_frames.watch_ddp,
    "torch.distributed.fsdp._fully_shard._fsdp_param_group": torch_frames.watch_fsdp,
}
