"""The rank of this process, if the launcher sets it only after the start: Ray and DeepSpeed under MPI, mp.spawn, TF_CONFIG."""
from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Optional, Tuple

from . import emit

# Same list as in src/record/settings.cpp, which reads them when the process starts.
_LAUNCHERS: Tuple[Tuple[str, str, str, str], ...] = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ("mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
)


def found() -> Optional[Dict[str, str]]:
    for launcher, rank, world, local in _LAUNCHERS:
        if rank in os.environ:
            names = {"rank": rank, "world_size": world, "local_rank": local}
            return {"launcher": launcher, **{key: os.environ[name] for key, name in names.items() if name in os.environ}}
    try:
        config = json.loads(os.environ["TF_CONFIG"])
        workers = sum(len(tasks) for tasks in config["cluster"].values())
        return {"launcher": "tf_config", "rank": str(config["task"]["index"]), "world_size": str(workers)}
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def tell() -> None:
    for key, value in (found() or {}).items():
        emit.setting(key, value)


def tell_distributed(distributed: Any) -> None:
    """Once initialized, torch.distributed is the best source: mp.spawn sets no environment at all."""
    if distributed.is_initialized():
        emit.setting("rank", distributed.get_rank())
        emit.setting("world_size", distributed.get_world_size())


def tell_at_first_step() -> None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        tell_distributed(distributed)
    else:
        tell()
