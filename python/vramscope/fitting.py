"""`vramscope.fit`: the largest batch that fits, from recordings at smaller ones. The `vramscope` program does the analysis.

    answer = vramscope.fit("runs/batch8", "runs/batch16", on="24GiB")
    answer["cards"][0]["largest"]
"""
from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _files

__all__ = ["fit"]


def fit(*runs: Union[str, "os.PathLike[str]"], on: Optional[str] = None, limit: Optional[str] = None, outside: Optional[str] = None,
        batch: Optional[int] = None, batches: Optional[Sequence[int]] = None, seq: Optional[int] = None, allocator: Optional[str] = None) -> Dict[str, Any]:
    """What `vramscope fit --json` prints, with sizes in bytes.

    runs: recordings of one program at different batch sizes; a single one gives a wider error.
    on: a size such as "24GiB", or a card such as "H100-80GB"; default: a table of cards.
    limit: of the framework's pool, instead of a device.
    outside: device memory that the context, libraries and other programs hold, if that is more than was recorded.
    batch: also forecast this one.
    batches: those of the recordings; default: found in their commands or shapes.
    seq: forecast this sequence length instead of a batch, from recordings at three lengths (`batches` are then these).
    allocator: as for `vramscope whatif`; default: that of the recording.
    """
    if not runs:
        raise ValueError("no recording given: expected one or more .vram files or run folders")
    options: List[str] = []
    for name, value in (("--on", on), ("--limit", limit), ("--outside", outside), ("--batch", batch), ("--seq", seq), ("--allocator", allocator)):
        if value is not None:
            options += [name, str(value)]
    if batches is not None:
        options += ["--batches", ",".join(str(one) for one in batches)]
    # A relative name such as "-n.vram" would be an option.
    operands = [os.path.join(os.curdir, path) if path.startswith("-") else path for path in map(os.fspath, runs)]
    done = subprocess.run([_files.program(), "fit", "--json", *options, *operands], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip() or f"vramscope fit exited with code {done.returncode}")
    return json.loads(done.stdout)
