"""JAX. `vramscope run` needs none of this; these functions are for numbers in the program.

    info = vramscope.jax.memory_info()                      # current and peak, while the program runs
    need = vramscope.jax.estimate(train_step, params, opt_state, batch)
    print(need)                                             # 1.8 GiB: 512 MiB of arguments, ...
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, NamedTuple

from . import _units
from ._memory import memory_info, reset_peak
from ._rows import MemoryRows as MemoryLog
from ._rows import Row

__all__ = ["Estimate", "MemoryLog", "RematSaving", "Row", "estimate", "memory_info", "remat_saving", "reset_peak"]


class Estimate(NamedTuple):
    """What one execution of a program takes on a device, in bytes, as XLA plans it. Compiling and trying algorithms may take more."""

    arguments: int
    outputs: int
    aliased: int            # outputs that take the place of donated arguments
    temporaries: int
    code: int               # the program itself; not in the total, because the allocator does not hold it

    @property
    def total(self) -> int:
        return self.arguments + self.outputs - self.aliased + self.temporaries

    def __str__(self) -> str:
        parts = f"{_units.size(self.arguments)} of arguments, {_units.size(self.temporaries)} of temporaries, {_units.size(self.outputs)} of outputs"
        return f"{_units.size(self.total)}: {parts}, of which {_units.size(self.aliased)} takes the place of donated arguments"


def estimate(function: Any, *arguments: Any, **keywords: Any) -> Estimate:
    """Compiles the function for these arguments (arrays, or jax.ShapeDtypeStruct) and returns what XLA plans to take for one execution.
    Nothing is executed. A function that is not jitted yet is jitted; pass the jitted one to include its donated arguments.

    With several devices, the numbers are those of one device."""
    import jax
    if not hasattr(function, "lower"):
        function = jax.jit(function)
    plan = function.lower(*arguments, **keywords).compile().memory_analysis()
    if plan is None:
        raise RuntimeError("this device does not report what a program needs; compile for a GPU or the CPU")
    return Estimate(arguments=plan.argument_size_in_bytes, outputs=plan.output_size_in_bytes, aliased=plan.alias_size_in_bytes,
                    temporaries=plan.temp_size_in_bytes, code=plan.generated_code_size_in_bytes)


class RematSaving(NamedTuple):
    """What jax.checkpoint saves in one execution of a program."""

    now: Estimate
    without: Estimate           # with everything saved for the backward pass, as if jax.checkpoint were not there

    @property
    def saved(self) -> int:
        return self.without.total - self.now.total

    def __str__(self) -> str:
        if self.saved <= 0:
            return f"jax.checkpoint saves nothing: {_units.size(self.now.total)} with it, {_units.size(self.without.total)} without"
        return f"jax.checkpoint saves {_units.size(self.saved)}: {_units.size(self.now.total)} instead of {_units.size(self.without.total)}"


def remat_saving(function: Any, *arguments: Any, **keywords: Any) -> RematSaving:
    """Compiles the function twice, as it is and with everything saved that its jax.checkpoint (jax.remat, nn.remat) computes again.
    Takes what estimate takes. Nothing is executed."""
    now = estimate(function, *arguments, **keywords)
    with _everything_saved():
        return RematSaving(now, estimate(function, *arguments, **keywords))


@contextlib.contextmanager
def _everything_saved() -> Iterator[None]:
    import jax
    from jax._src.ad_checkpoint import remat_p
    from jax.experimental.xla_metadata import set_xla_metadata
    original = remat_p.bind

    def bind(*values: Any, **parameters: Any) -> Any:
        return original(*values, **{**parameters, "policy": jax.checkpoint_policies.everything_saveable})

    remat_p.bind = bind
    try:
        # The metadata is part of the keys of JAX's caches, which would answer with what was traced before.
        with set_xla_metadata(vramscope="everything saved"):
            yield
    finally:
        del remat_p.bind
