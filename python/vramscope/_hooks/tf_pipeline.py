"""Input pipelines, stage by stage: the line that creates a stage, what it holds at most, and what TensorFlow itself counts in its buffer."""
from __future__ import annotations

import importlib
import sys
import threading
import weakref
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from . import emit, layers, lines, training
from .wrapping import wrap

_NUMBER = "_vramscope_stage"                    # on a dataset
_LOOK_AT = (10, 1000)                           # steps after which buffers are looked at: each look uses up one of TensorFlow's numbers
_numbers: Dict[Tuple[str, str], int] = {}       # (op, line) -> number of the stage
_reported: Dict[int, Tuple[int, int]] = {}      # number -> elements, bytes
_iterators: "weakref.WeakSet[Any]" = weakref.WeakSet()
when_iterated: List[Callable[[Any], None]] = []         # called with a dataset when an iterator over it is made; filled in by other hooks


def _buffer(dataset: Any) -> int:
    return _number(dataset, "_buffer_size")     # -1: TensorFlow chooses it


def _all(dataset: Any) -> int:
    return int(dataset.cardinality())


def _one(dataset: Any) -> int:
    return 1


class _Kind(NamedTuple):
    elements: Callable[[Any], int]      # that the stage holds at most
    of_input: bool                      # whether these are as they come in, or as they go out
    nodes: Tuple[str, ...]              # what TensorFlow calls the running stage, without its version


_METHODS = {
    "shuffle": _Kind(_buffer, True, ("Shuffle", "ShuffleAndRepeat")),
    "prefetch": _Kind(_buffer, False, ("Prefetch",)),
    "map": _Kind(_one, False, ("Map", "ParallelMap")),
    "batch": _Kind(_one, False, ("Batch", "ParallelBatch", "MapAndBatch")),
    "padded_batch": _Kind(_one, False, ("PaddedBatch",)),
    "cache": _Kind(_all, True, ("Cache", "MemoryCache", "MemoryCacheImpl")),
    "interleave": _Kind(_one, False, ("Interleave", "ParallelInterleave")),
}
_SOURCES = {"from_generator": _Kind(_one, False, ("FlatMap",)), "from_tensor_slices": _Kind(_one, False, ("TensorSlice",)),
            "from_tensors": _Kind(_one, False, ("Tensor",))}


def install(tf: ModuleType) -> None:
    from tensorflow.python.data.ops import dataset_autograph, dataset_ops, iterator_ops, structured_function
    from tensorflow.python.framework import tensor_util
    global _constant_value
    _constant_value = tensor_util.constant_value

    def made(method: str, kind: _Kind) -> Callable[..., None]:
        def after(token: None, ok: bool, dataset: Any, *_: Any, **__: Any) -> None:
            if ok and not training.is_tracing():
                _stage(tf, dataset, method, kind, lines.user_line(sys._getframe(1)))
        return after

    for method, kind in _METHODS.items():
        wrap(dataset_ops.DatasetV2, method, after=made(method, kind))
    for method, kind in _SOURCES.items():
        wrap(importlib.import_module(f"tensorflow.python.data.ops.{method}_op"), f"_{method}", after=made(method, kind))

    def iterator_made(token: None, ok: bool, result: Any, iterator: Any, dataset: Any = None, *_: Any, **__: Any) -> None:
        if not ok:
            return
        if not training.is_tracing():
            _iterators.add(iterator)
        for tell in when_iterated if dataset is not None else ():
            tell(dataset)

    wrap(iterator_ops.OwnedIterator, "__init__", after=iterator_made)
    # What map(), filter() and the like compute: the ops of the functions that they are given. reduce() is a loop of the program, and so is a for
    # statement over a dataset inside a tf.function, of which TensorFlow makes scan() and reduce().
    computed = layers.Call("", None, 0, layers.INPUT)

    def function_begins(function: Any, func: Any, transformation_name: str = "", *_: Any, **__: Any) -> bool:
        is_loop = transformation_name == "reduce()" or getattr(func, "__module__", "") == dataset_autograph.__name__
        if is_loop:
            _loops.depth += 1
        else:
            layers.push(computed)
        return is_loop

    def function_ended(is_loop: bool, *_: Any, **__: Any) -> None:
        if is_loop:
            _loops.depth -= 1
        else:
            layers.pop()

    wrap(structured_function.StructuredFunctionWrapper, "__init__", function_begins, function_ended)
    training.after_some_steps.append(_look)


class _Loops(threading.local):
    depth = 0


_loops = _Loops()


def in_loop() -> bool:
    """Whether the body of a loop over a dataset is being traced."""
    return _loops.depth > 0


_constant_value: Callable[[Any], Any] = lambda tensor: None


def _number(dataset: Any, name: str) -> int:
    """A number that the user passed, which is a tensor by now; 0 if it is not known."""
    value = getattr(dataset, name, None)
    known = None if value is None else _constant_value(value)
    return 0 if known is None else int(known)


def element_bytes(tf: ModuleType, dataset: Any) -> int:
    """Of one element; 0 if that is not known. Only the first axis, the batch, may have no size."""
    sum_ = 0
    for spec in tf.nest.flatten(dataset.element_spec):
        if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
            return 0
        count = spec.shape.num_elements()
        if count is None:
            rest = spec.shape[1:].num_elements() if spec.shape.rank else None
            count = 0 if rest is None else rest * batch_size(dataset)
            if not count:
                return 0
        sum_ += count * spec.dtype.size
    return sum_


def _chain(dataset: Any) -> Iterator[Any]:
    """The dataset, its input, and so on; stages with several inputs end it."""
    while dataset is not None:
        yield dataset
        inputs = dataset._inputs() if hasattr(dataset, "_inputs") else ()
        dataset = inputs[0] if len(inputs) == 1 else None


def batch_size(dataset: Any) -> int:
    """Batch size of the last batch(); 0 if there is none or it cannot be determined."""
    return next((size for size in (_number(stage, "_batch_size") for stage in _chain(dataset)) if size > 0), 0)


def _stage(tf: ModuleType, dataset: Any, method: str, kind: _Kind, line: Optional[lines.Line]) -> None:
    if line is None or hasattr(dataset, _NUMBER):
        return
    number = _numbers.setdefault((method, str(line)), len(_numbers) + 1)
    setattr(dataset, _NUMBER, number)
    inputs = dataset._inputs()
    elements = max(0, kind.elements(dataset))
    if method == "cache" and _constant_value(dataset._filename) not in (b"", ""):
        elements = 0                                        # in a file
    if method in _SOURCES and method != "from_generator":
        each = sum(tensor.shape.num_elements() * tensor.dtype.size for tensor in dataset._tensors)
    else:
        each = element_bytes(tf, inputs[0] if kind.of_input and inputs else dataset)
    if _reported.get(number) != (elements, each):
        _reported[number] = (elements, each)
        emit.report("dataset_stage", op=method, file=line.file, line=line.line, number=number, elements=elements, bytes=each)


_KINDS = {**_METHODS, **_SOURCES}
_NODES = {node: method for method, kind in _KINDS.items() for node in kind.nodes}


def _look(step: int) -> None:
    if step in _LOOK_AT:
        for iterator in list(_iterators):
            emit.quietly(lambda: _look_into(iterator))


def _look_into(iterator: Any) -> None:
    """TensorFlow keeps a model of each running pipeline to tune it, with the bytes in each buffer."""
    from tensorflow.core.framework import model_pb2
    from tensorflow.python.ops import gen_experimental_dataset_ops
    read_model = getattr(gen_experimental_dataset_ops, "iterator_get_model_proto", None)       # since 2.17
    stages = [(_method(stage), getattr(stage, _NUMBER)) for stage in _chain(getattr(iterator, "_dataset", None)) if hasattr(stage, _NUMBER)]
    if not stages or read_model is None:
        return
    model = model_pb2.ModelProto.FromString(read_model(iterator._iterator_resource).numpy())
    at = model.output
    while at in model.nodes:
        node = model.nodes[at]
        method = _NODES.get(node.name.rstrip("V0123456789"))
        place = next((place for place, (of_stage, _) in enumerate(stages) if of_stage == method), None)
        if place is not None:                               # what was skipped, TensorFlow has optimized away
            if node.buffered_elements or _KINDS[method].elements is not _one:          # 0 of a stage without a buffer says nothing
                emit.report("stage_buffer", op=node.name, number=stages[place][1], elements=node.buffered_elements,
                            bytes=node.buffered_bytes)
            del stages[:place + 1]
        at = node.inputs[0] if len(node.inputs) == 1 else -1


def _method(stage: Any) -> str:
    number = getattr(stage, _NUMBER)
    return next((method for (method, _), one in _numbers.items() if one == number), "")
