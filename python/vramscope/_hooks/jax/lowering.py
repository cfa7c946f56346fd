"""What JAX knows about the arguments of a program when it hands the program to XLA: which were donated, and how they are sharded."""
from __future__ import annotations

import math
import re
from typing import Any, Dict, List, NamedTuple, Optional

from .. import emit, wrapping

_MOST = 256                                 # programs that are lowered and not compiled


class Lowered(NamedTuple):
    donated: List[bool]                     # what the caller asked for
    bytes: List[int]                        # on each device
    copies: List[int]                       # devices that hold the same bytes; 1: none does
    source: str                             # where the function is defined, "file:line"; empty if JAX does not know


_last: Dict[str, Lowered] = {}              # by the program's name, as _key() has it


def _key(name: str) -> str:
    """The name of a module is "jit(train_step)" before JAX hands it to XLA, and "jit_train_step" afterwards."""
    return re.sub(r"[^\w.-]", "_", name).strip("_")


def install(mlir: Any) -> None:
    wrapping.wrap(mlir, "lower_jaxpr_to_module", _lowering)


def take(name: str, arguments: int) -> Optional[Lowered]:
    """What was last lowered under this name, if it has this many arguments."""
    found = _last.pop(_key(name), None)
    return found if found is not None and len(found.bytes) == arguments else None


def _lowering(name: str, jaxpr: Any, *_: Any, **keywords: Any) -> None:
    emit.quietly(lambda: _note(name, jaxpr, keywords))


def _note(name: str, jaxpr: Any, keywords: Dict[str, Any]) -> None:
    avals = keywords.get("in_avals") or jaxpr.in_avals
    shardings = keywords.get("arg_shardings") or [None] * len(avals)
    parts = [_part(aval, sharding) for aval, sharding in zip(avals, shardings)]
    if len(_last) >= _MOST:
        _last.clear()
    _last[_key(name)] = Lowered([bool(one) for one in keywords["donated_args"]], [size for size, _ in parts], [copies for _, copies in parts],
                                _source(jaxpr))


def _source(jaxpr: Any) -> str:
    """Of "train_step at train.py:12"."""
    info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    return (getattr(info, "func_src_info", None) or "").partition(" at ")[2]


def _part(aval: Any, sharding: Any) -> "tuple[int, int]":
    """Bytes on each device, and the number of devices that hold the same ones."""
    try:
        item, elements = aval.dtype.itemsize, math.prod(aval.shape)
        if sharding is None or not hasattr(sharding, "shard_shape"):
            return item * elements, 1
        shard = math.prod(sharding.shard_shape(aval.shape))
        return item * shard, max(1, sharding.num_devices * shard // max(1, elements))
    except Exception:       # an opaque type, or a sharding that XLA has to find
        return 0, 1
