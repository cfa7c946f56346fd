"""Finds the graph op that allocated the block of a tensor."""
from __future__ import annotations

from typing import Any

# Ops that only change a tensor's shape or name pass on the block of their input.
_SAME_BUFFER = ("Reshape", "Identity", "Squeeze", "ExpandDims", "StopGradient", "PreventGradient")
# Ops that overwrite an input of the same type and shape with their result if they are the last to read that input, which threads decide.
IN_PLACE = frozenset((
    "Abs", "Add", "AddN", "AddV2", "BiasAdd", "Cast", "Div", "DivNoNan", "Elu", "Erf", "Exp", "Expm1", "FusedBatchNormV3", "LeakyRelu", "Log", "Log1p",
    "LogSoftmax", "Maximum", "Minimum", "Mul", "MulNoNan", "Neg", "Pow", "RealDiv", "Reciprocal", "Relu", "Relu6", "Rsqrt", "SelectV2", "Selu", "Sigmoid",
    "Sign", "Softmax", "SoftmaxCrossEntropyWithLogits", "Softplus", "SparseSoftmaxCrossEntropyWithLogits", "Sqrt", "Square", "SquaredDifference", "Sub",
    "Tanh"))


def maker(op: Any) -> Any:
    while op.type in _SAME_BUFFER and op.inputs:
        op = op.inputs[0].op
    return op
