"""Functions that were traced before recording began, or before their first call: what tracing would have said is read from their graphs."""
from __future__ import annotations

from typing import Any, Dict, Iterator, Set, Tuple

from . import keras_variables, tf_variables, training

_WRITES = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter", "ResourceStridedSliceAssign")
_OF_TAPE = "gradient_tape/"     # TensorFlow's name scope for what a tape adds to a graph
_DEEPEST = 32                   # functions that call functions

_Place = Tuple[int, bool]       # number of an argument, whether it is written in a loop of the graph


def learn(about: training.Traced, function: Any) -> None:
    """`function` is called for the first time that is seen; usually, it is not traced yet."""
    for concrete in function._function_cache.values():      # TensorFlow's own method for this traces a function with a signature
        graph = concrete.graph
        definition = graph.as_graph_def()
        bodies = {body.signature.name: body for body in definition.library.function}
        if any(node.name.startswith(_OF_TAPE) for body in (definition.node, *(one.node_def for one in bodies.values())) for node in body):
            about.takes_gradients = True
        written = _Written(bodies)
        handles = {inner.op.name: outer for outer, inner in graph.captures}
        for name, in_loop in written.names(definition.node, _DEEPEST):
            variable = tf_variables.of_handle(handles.get(name))
            if variable is not None:
                _note(about, variable, in_loop)


class _Written:
    """Which arguments of a function are variables that it writes, itself or in the functions it calls."""

    def __init__(self, bodies: Dict[str, Any]) -> None:
        self._bodies = bodies
        self._known: Dict[str, Set[_Place]] = {}

    def names(self, nodes: Any, depth: int) -> Iterator[Tuple[str, bool]]:
        """Names of the arguments, as the nodes have them."""
        for node in nodes:
            inputs = [each.partition(":")[0] for each in node.input if not each.startswith("^")]
            if node.op.startswith(_WRITES):
                yield inputs[0], False
            for body in self._called(node) if depth else ():
                is_loop = node.op.endswith("While")
                first = len(inputs) - len(self._bodies[body].signature.input_arg)       # a condition comes before the arguments
                for number, in_loop in self._arguments(body, depth - 1):
                    yield inputs[first + number], in_loop or is_loop

    def _called(self, node: Any) -> Iterator[str]:
        for value in node.attr.values():
            for called in (value.func, *value.list.func):
                if called.name in self._bodies:
                    yield called.name

    def _arguments(self, name: str, depth: int) -> Set[_Place]:
        if name not in self._known:
            body = self._bodies[name]
            numbers = {argument.name: i for i, argument in enumerate(body.signature.input_arg)}
            self._known[name] = {(numbers[argument], in_loop) for argument, in_loop in self.names(body.node_def, depth) if argument in numbers}
        return self._known[name]


def _note(about: training.Traced, variable: Any, in_loop: bool) -> None:
    optimizer = keras_variables.counting(variable)
    if optimizer is not None:
        about.optimizers.add(training.number_of(optimizer))
    elif variable.trainable:
        about.writes = about.writes or training.by_hand(variable)
    else:
        return
    about.loops = about.loops or in_loop
