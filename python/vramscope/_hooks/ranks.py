"""The rank of this process, where the launcher sets it only after the start: Ray and DeepSpeed under MPI."""
from __future__ import annotations

import os
from typing import Dict, Optional, Tuple

# Same list as in src/record/settings.cpp, which reads them when the process starts.
_LAUNCHERS: Tuple[Tuple[str, str, str, str], ...] = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ("mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
)


def of_launcher() -> Optional[Dict[str, str]]:
    """As settings of the recording. None if there is no launcher."""
    for launcher, rank, world, local in _LAUNCHERS:
        if rank in os.environ:
            names = {"rank": rank, "world_size": world, "local_rank": local}
            return {"launcher": launcher, **{key: os.environ[name] for key, name in names.items() if name in os.environ}}
    return None
