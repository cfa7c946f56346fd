"""JAX. `vramscope run` needs none of this; these functions are for numbers in the program.

    info = vramscope.jax.memory_info()                      # current and peak, while the program runs
    need = vramscope.jax.estimate(train_step, params, opt_state, batch)
    print(need)                                             # 1.8 GiB: 512 MiB of arguments, ...
"""
from __future__ import annotations

from typing import Any, NamedTuple

from . import _units
from ._memory import memory_info, reset_peak
from ._rows import MemoryRows as MemoryLog
from ._rows import Row

__all__ = ["Estimate", "MemoryLog", "Row", "estimate", "memory_info", "reset_peak"]


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
