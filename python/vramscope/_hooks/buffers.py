"""Which op of a graph made the block that holds a tensor."""
from __future__ import annotations

from typing import Any

# Ops that give a tensor another shape or name pass their input's block on.
_SAME_BUFFER = ("Reshape", "Identity", "Squeeze", "ExpandDims", "StopGradient", "PreventGradient")


def maker(op: Any) -> Any:
    while op.type in _SAME_BUFFER and op.inputs:
        op = op.inputs[0].op
    return op
