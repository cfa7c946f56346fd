"""Records, for each new graph op, the user's line and the layer it belongs to.

Walking the Python frames here takes a few microseconds per op; the tracebacks that TensorFlow keeps take 170 (2.21).
"""
from __future__ import annotations

import sys
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, Optional

from . import emit, layers, lines, tf_building, tf_constants, tf_pipeline, tf_saved, tf_variables, training, walking
from .wrapping import wrap

_ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "Assign")
_OF_MODEL = "_vramscope_of_model"  # on a graph: names of the ops that the layers created, or that process their results
_SCOPES = "_vramscope_scopes"      # on a graph: name scope -> the call of the layer whose ops it contains


def install(tf: ModuleType) -> None:
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import control_flow_v2_func_graphs
    from tensorflow.python.util import tf_stack

    def in_graph_loop() -> bool:
        graph = ops.get_default_graph()
        while graph is not None and not isinstance(graph, control_flow_v2_func_graphs.WhileBodyFuncGraph):
            graph = getattr(graph, "outer_graph", None)
        return graph is not None or tf_pipeline.in_loop()

    def source_map() -> Dict[Any, Any]:
        return tf_stack._source_mapper_stacks[tf_stack._get_thread_key()][-1].get_effective_source_map()

    lines.source_map = source_map
    training.is_tracing = lambda: not context.executing_eagerly()
    training.in_graph_loop = in_graph_loop

    def created(token: None, ok: bool, op: Any, graph: Any, *_: Any, **__: Any) -> None:
        if ok:
            _made(graph, op, sys._getframe(1))

    wrap(ops.Graph, "_create_op_internal", after=created)


def _on(graph: Any, name: str, kind: Callable[[], Any]) -> Any:
    """An attribute of ours on a graph."""
    found = getattr(graph, name, None)
    if found is None:
        found = kind()
        setattr(graph, name, found)
    return found


def _made(graph: Any, op: Any, frame: FrameType) -> None:
    name, op_type = op.name, op.type
    if not graph.building_function:
        tf_building.op_made(graph, frame)
    if op_type == tf_saved.LIST:
        tf_saved.list_made(op)
    call = layers.current()
    if call is not None and call.caller:                    # the forward pass
        scopes, scope = _on(graph, _SCOPES, dict), name.rpartition("/")[0]
        if scope not in scopes:
            scopes[scope] = call._replace(caller=0)
    label = call.label if call is not None else None
    if call is None or call.caller:
        # Ops that belong neither to a layer nor to the optimizer, and that process results of layers.
        of_model = getattr(graph, _OF_MODEL, None)
        if call is None and of_model and any(tensor.op.name in of_model for tensor in op.inputs):
            label = layers.LOSS
        if label is not None:
            _on(graph, _OF_MODEL, set).add(name)
    line = _line(call, frame)
    if line is not None:
        emit.op_source(name, line.file, line.line, line.function, label)
        if op_type == "Const":
            tf_constants.made(op, line)
        elif op_type in _ASSIGNMENTS:
            tf_variables.made_assignment(op)


def _line(call: Optional[layers.Call], frame: FrameType) -> Optional[lines.Line]:
    """The line that created the op: the user's innermost line, unless it only runs a model whose layers were created elsewhere."""
    if call is not None and call.caller:
        # In the layer's own `call`, or in that of an outer layer that calls this one by name.
        inner = walking.user_place(frame, stop=layers.caller_around(call))
        if inner is not None or call.built is not None:
            return inner.line if inner is not None else call.built
    outer = walking.user_place(frame)
    # Backward and update ops: the line that requested them, unless it is only the line with fit().
    if call is not None and call.built is not None and (outer is None or outer.frame == training.loop_frame()):
        return call.built
    return None if outer is None else outer.line


def layer_of_scope(graph: Any, scope: str) -> Optional[layers.Call]:
    """The layer whose forward ops have this name scope, in this graph or an outer one."""
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
