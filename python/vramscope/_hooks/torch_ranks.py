"""The rank of a PyTorch process. mp.spawn sets no environment at all, so that torch.distributed is the best source once it is initialized."""
from __future__ import annotations

import sys
from typing import Any

from . import emit, ranks


def initialized(distributed: Any) -> None:
    if distributed.is_initialized():
        emit.setting("rank", distributed.get_rank())
        emit.setting("world_size", distributed.get_world_size())


def first_step() -> None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        initialized(distributed)
    else:
        for key, value in (ranks.of_launcher() or {}).items():
            emit.setting(key, value)
