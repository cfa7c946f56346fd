"""Each graph op, when it is made: the user's line and the layer it belongs to.

Walking the Python frames here costs a few microseconds an op; the tracebacks that TensorFlow keeps cost 170 (2.21).
"""
from __future__ import annotations

import sys
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, Optional

from . import emit, layers, lines, tf_constants, tf_variables, training
from .wrapping import wrap

_ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
_OF_MODEL = "_vramscope_of_model"  # on a graph: names of the ops that the layers made, or that compute on with what they made
_SCOPES = "_vramscope_scopes"      # on a graph: name scope -> the call of the layer whose ops it holds


def install(tf: ModuleType) -> None:
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import control_flow_v2_func_graphs
    from tensorflow.python.util import tf_stack

    def in_graph_loop() -> bool:
        graph = ops.get_default_graph()
        while graph is not None and not isinstance(graph, control_flow_v2_func_graphs.WhileBodyFuncGraph):
            graph = getattr(graph, "outer_graph", None)
        return graph is not None

    def source_map() -> Dict[Any, Any]:
        return tf_stack._source_mapper_stacks[tf_stack._get_thread_key()][-1].get_effective_source_map()

    lines.source_map = source_map
    training.is_tracing = lambda: not context.executing_eagerly()
    training.in_graph_loop = in_graph_loop
    training.tensor_number = pywrap_tfe.TFE_Py_UID

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def create(self: Any, op_type: str, *args: Any, **kwargs: Any) -> Any:
            op = original(self, op_type, *args, **kwargs)
            frame = sys._getframe(1)
            emit.quietly(lambda: _made(self, op, op_type, frame))
            return op
        return create

    wrap(ops.Graph, "_create_op_internal", make)


def _on(graph: Any, name: str, kind: Callable[[], Any]) -> Any:
    """Our own attribute of a graph."""
    found = getattr(graph, name, None)
    if found is None:
        found = kind()
        setattr(graph, name, found)
    return found


def _made(graph: Any, op: Any, op_type: str, frame: FrameType) -> None:
    name = op.name
    call = layers.current()
    if call is not None and call.frame is not None:         # the forward pass
        _on(graph, _SCOPES, dict).setdefault(name.rpartition("/")[0], call._replace(frame=None))
    label = call.label if call is not None else None
    if call is None or call.frame is not None:
        # Ops that are neither a layer's nor the optimizer's and compute on with what the layers made.
        of_model = _on(graph, _OF_MODEL, set)
        if call is None and any(tensor.op.name in of_model for tensor in op.inputs):
            label = layers.LOSS
        if label is not None:
            of_model.add(name)
    line = _line(call, frame)
    if line is not None:
        emit.op_source(name, line.file, line.line, line.function, label)
        if op_type == "Const":
            tf_constants.made(op, line)
        elif op_type in _ASSIGNMENTS:
            tf_variables.made_assignment(op)


def _line(call: Optional[layers.Call], frame: FrameType) -> Optional[lines.Line]:
    """The line that made the op: the user's innermost one, unless that only runs a model whose layers were made elsewhere."""
    if call is None:
        return lines.user_line(frame)
    if call.frame is not None:
        # In the layer's own `call`, or in the one of a layer around it that calls this one by name.
        inner = lines.user_frame(frame, stop=layers.frame_around(call))
        return lines.of_frame(inner) if inner is not None else call.built or lines.user_line(frame)
    # Backward and update ops: the line that asked for them, unless that is only the line with fit().
    outer = lines.user_frame(frame)
    if outer is None or outer is training.loop_frame():
        return call.built or lines.user_line(frame)
    return lines.of_frame(outer)


def layer_of_scope(graph: Any, scope: str) -> Optional[layers.Call]:
    """The layer whose forward ops stand in this name scope, in this graph or one around it."""
    while graph is not None:
        scopes = getattr(graph, _SCOPES, None)
        if scopes:
            name = scope.rstrip("/")
            while name:
                if name in scopes:
                    return scopes[name]
                name = name.rpartition("/")[0]
        graph = getattr(graph, "outer_graph", None)
    return None
