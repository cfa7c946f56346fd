"""The layer of the network that is being called, by the name that `model.summary()` shows.

Maintained by Keras' hook and read by TensorFlow's: while a function is traced, it identifies the layer of each new op; in eager
mode, it becomes a mark.
"""
from __future__ import annotations

import bisect
import threading
import weakref
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from . import lines


# What is outside all layers, by its purpose.
OPTIMIZER = "(optimizer)"
LOSS = "(loss and metrics)"
ALL_REDUCE = "(all-reduce)"
INPUT = "(input)"


class Call(NamedTuple):
    path: str                       # "block_2/attention"; the outermost model itself has the path ""
    built: Optional[lines.Line]     # where the layer was created
    caller: int                     # address of the frame that called it, valid during the call; 0: not a forward pass
    outside: str = ""               # name if there is no path: "(net)" for what a model computes between its layers

    @property
    def label(self) -> str:
        return self.path or self.outside


_MANY = 1 << 16
_LOSS_CALL = Call("", None, 0, LOSS)


# Eager mode. The backward pass of most ops does not get the name scope of the forward op. But tensors are numbered as they are
# created: what a layer's call creates is newer than its arguments, and not newer than its result. (Asking for the number of the
# next tensor would use it up, and change the names of functions in TensorFlow's messages.)
def newest(values: Iterable[Any], depth: int = 4) -> int:
    """The highest number of an eager tensor in `values`, or -1 if there is none."""
    found = -1
    for value in values:
        if isinstance(value, (list, tuple)):
            number = newest(value, depth - 1) if depth else -1
        elif isinstance(value, dict):
            number = newest(value.values(), depth - 1) if depth else -1
        else:
            number = getattr(value, "_id", -1) if hasattr(value, "_numpy") else -1
        found = max(found, number)
    return found


def is_symbolic(args: Any, kwargs: Any) -> bool:
    """Whether a layer is called with symbols of Keras (3 or 2), directly or in one list."""
    for value in (*args, *kwargs.values()):
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        if type(first).__name__ == "KerasTensor":
            return True
    return False


class Calls:
    """The calls of layers in one thread, in the order in which they ended."""

    def __init__(self) -> None:
        self.begins: List[int] = []
        self.ends: List[int] = []
        self.calls: List[Call] = []
        self.last: Optional[Call] = None        # the layer whose op was differentiated last

    def add(self, begin: int, end: int, call: Call) -> None:
        end = max(end, self.newest)             # of an inner layer, if this one returns something older
        if end < begin:                         # it created nothing: symbols, or its input unchanged
            return
        if len(self.ends) > _MANY:              # backward passes ask for the newest ones
            for kept in (self.begins, self.ends, self.calls):
                del kept[:_MANY // 2]
        self.begins.append(begin)
        self.ends.append(end)
        self.calls.append(call)

    @property
    def newest(self) -> int:
        return self.ends[-1] if self.ends else -1

    def holding(self, number: int) -> Optional[Call]:
        """The innermost call that created this tensor; the loss if it was created after all calls."""
        for i in range(bisect.bisect_left(self.ends, number), len(self.ends)):
            if self.begins[i] <= number:
                return self.calls[i]
        return _LOSS_CALL if self.ends and number > self.ends[-1] else None


def newest_of_call(args: Any, kwargs: Any) -> int:
    """Number of the newest tensor that a layer is called with. If it is called with arrays: the newest one created by earlier
    layers."""
    number = newest((args, kwargs))
    return number if number >= 0 else _thread.eager.newest


class _Thread(threading.local):
    def __init__(self) -> None:
        self.calls: List[Call] = []
        self.eager = Calls()


_thread = _Thread()
_built: Dict[int, lines.Line] = {}


def current() -> Optional[Call]:
    calls = _thread.calls
    return calls[-1] if calls else None


def push(call: Call) -> None:
    _thread.calls.append(call)


def pop() -> None:
    _thread.calls.pop()


class inside:
    """`with inside("(optimizer)"):` labels what runs outside all layers by its purpose."""

    __slots__ = ("_call",)

    def __init__(self, name: str) -> None:
        self._call = Call("", None, 0, name)

    def __enter__(self) -> None:
        push(self._call)

    def __exit__(self, *_: object) -> None:
        pop()


def caller_around(call: Call) -> int:
    """Address of the frame that called the layer around this one; 0 if this is the outermost."""
    calls = _thread.calls
    for i in range(len(calls) - 1, 0, -1):
        if calls[i] is call:
            return calls[i - 1].caller
    return 0


def outermost_caller() -> int:
    """Address of the frame that called the outermost running layer."""
    return _thread.calls[0].caller if _thread.calls else 0


# Models inside a model that is trained, evaluated or asked for predictions -> their paths. A train_step may call them without the
# model around them, and a program may use them by themselves: their layers have one name all the same.
_inside_model: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()


def name_models_in(model: Any, model_type: type, path: str = "", depth: int = 8) -> None:
    for layer in model.layers if depth else ():
        if isinstance(layer, model_type) and layer not in _inside_model:
            _inside_model[layer] = f"{path}/{layer.name}" if path else layer.name
            name_models_in(layer, model_type, _inside_model[layer], depth - 1)


def path_below(parent: Optional[Call], layer: Any, is_model: bool) -> str:
    if parent is None:
        return _inside_model.get(layer, "") if is_model else layer.name
    return f"{parent.path}/{layer.name}" if parent.path else layer.name


def remember_built(layer: Any, line: Optional[lines.Line]) -> None:
    """Where a layer was created. A layer that another layer creates for itself gets the line of that one."""
    if line is not None:
        _built[id(layer)] = line
        weakref.finalize(layer, _built.pop, id(layer), None)


def built(layer: Any) -> Optional[lines.Line]:
    return _built.get(id(layer))


def eager_calls() -> Calls:
    return _thread.eager


def of_forward_op(inputs: Iterable[Any], outputs: Iterable[Any]) -> Optional[Call]:
    """The layer of an op, determined by the newest tensor it read or created. If no call is known for it, the layer of the
    previous op."""
    calls = _thread.eager
    newest = -1
    for tensors in (outputs, inputs):
        for tensor in tensors:
            number = getattr(tensor, "_id", -1)
            if number > newest:
                newest = number
    if newest >= 0:
        calls.last = calls.holding(newest) or calls.last
    return calls.last
