"""Keras 2 and 3: epochs, batches, evaluation and saving become marks; layers get the names and lines that people know."""
from __future__ import annotations

import importlib
import itertools
import sys
import threading
from types import ModuleType
from typing import Any, Callable, List, Optional, Tuple

from .._recorder import BATCH, BEGIN, END, EPOCH, LAYER, PHASE, STEP
from . import emit, keras_optimizers, keras_variables, layers, lines, training
from .wrapping import wrap

_train_steps = itertools.count(1)


def install(keras: ModuleType) -> None:
    root = keras.__name__
    emit.at_first_event(lambda: _settings(keras))
    _watch_training(_first(root, "src.callbacks.callback_list", "src.callbacks").CallbackList)
    layer = _first(root, "src.layers.layer", "src.engine.base_layer").Layer
    model = _first(root, "src.models.model", "src.engine.training").Model
    _watch_loops(model)
    metric = _first(root, "src.metrics.metric", "src.metrics.base_metric").Metric
    _watch_layers(layer, model, metric)
    _watch_metrics(metric)
    keras_optimizers.install(_first(root, "src.optimizers.base_optimizer", "src.optimizers.optimizer"))
    training.describe_variables = keras_variables.describe
    for name in ("save", "save_weights", "export"):
        wrap(model, name, _in_phase("save"))
    wrap(model, "load_weights", _in_phase("load"))


def _first(root: str, *modules: str) -> ModuleType:
    for name in modules:
        try:
            return importlib.import_module(f"{root}.{name}")
        except ImportError:
            continue
    raise ImportError(f"{root} has none of {', '.join(modules)}")


def _settings(keras: ModuleType) -> None:
    emit.setting(f"{keras.__name__}.version", getattr(keras, "__version__", "unknown"))
    backend = getattr(getattr(keras, "config", None), "backend", None)
    if callable(backend):
        emit.setting("keras.backend", backend())
    policy = getattr(getattr(keras, "mixed_precision", None), "dtype_policy", None)
    if callable(policy):
        emit.setting("keras.dtype_policy", getattr(policy(), "name", policy()))


def _in_phase(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            with emit.phase(name):
                return original(self, *args, **kwargs)
        return call
    return make


def _last_batch(callbacks: Any, batch: int) -> int:
    """With steps_per_execution Keras calls the last one of a full execution, though the data may end before."""
    steps = (getattr(callbacks, "params", None) or {}).get("steps")
    return min(int(batch) + 1, int(steps)) if steps else int(batch) + 1


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open: List[Tuple[int, str, int]] = []      # what a loop has begun and not ended, innermost last: kind, name, number


_thread = _Thread()


def _begin(kind: int, name: str, number: int = -1) -> None:
    _thread.open.append((kind, name, number))
    emit.mark(kind, BEGIN, name, number)


def _end(kind: int, name: str, number: int = -1) -> None:
    if _thread.open and _thread.open[-1][:2] == (kind, name):
        _thread.open.pop()
    emit.mark(kind, END, name, number)


def _end_all_above(depth: int) -> None:
    while len(_thread.open) > depth:
        kind, name, number = _thread.open.pop()
        emit.mark(kind, END, name, number)
        if kind == PHASE:
            training.leave_loop()


def _watch_loops(model_type: type) -> None:
    """A loop that raises (out of memory, an interrupt, a callback) never tells its callbacks that it ended.
    A single batch has no callbacks: only the line that asks for it is kept in mind."""
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def loop(self: Any, *args: Any, **kwargs: Any) -> Any:
            depth = len(_thread.open)
            try:
                return original(self, *args, **kwargs)
            finally:
                _end_all_above(depth)
        return loop

    def make_one(original: Callable[..., Any]) -> Callable[..., Any]:
        def on_batch(self: Any, *args: Any, **kwargs: Any) -> Any:
            with training.single_batch():
                return original(self, *args, **kwargs)
        return on_batch

    for name in ("fit", "evaluate", "predict"):
        wrap(next(kind for kind in model_type.__mro__ if name in vars(kind)), name, make)
    for name in ("train_on_batch", "test_on_batch", "predict_on_batch"):
        wrap(next(kind for kind in model_type.__mro__ if name in vars(kind)), name, make_one)


# The list of callbacks is told of every event in the training loop's own thread, whatever the callbacks in it do; wrapping its methods
# changes neither the list nor how Keras dispatches.
def _watch_training(callback_list: type) -> None:
    def around(name: str, before: Optional[Callable[..., None]], after: Optional[Callable[..., None]]) -> None:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(self: Any, *args: Any, **kwargs: Any) -> Any:
                if before is not None:
                    before(self, *args)
                try:
                    return original(self, *args, **kwargs)
                finally:        # a callback that raises ends the training, but this batch was run
                    if after is not None:
                        after(self, *args)
            return call
        wrap(callback_list, name, make)

    def train_begin(self: Any, *_: Any) -> None:
        training.enter_loop()
        _begin(PHASE, "train")
        training.tag_variables()

    def train_end(self: Any, *_: Any) -> None:
        training.tag_variables()
        _end(PHASE, "train")
        training.leave_loop()

    def epoch_begin(self: Any, epoch: int = 0, *_: Any) -> None:
        _begin(EPOCH, "epoch", int(epoch) + 1)

    def epoch_end(self: Any, epoch: int = 0, *_: Any) -> None:
        _end(EPOCH, "epoch", int(epoch) + 1)
        training.tag_variables()

    def batch_begin(self: Any, batch: int = 0, *_: Any) -> None:
        self._vramscope_step = next(_train_steps)
        _begin(BATCH, "train", int(batch) + 1)
        _begin(STEP, "train", self._vramscope_step)

    def batch_end(self: Any, batch: int = 0, *_: Any) -> None:
        _end(STEP, "train", getattr(self, "_vramscope_step", -1))
        _end(BATCH, "train", _last_batch(self, batch))
        training.step_done()

    around("on_train_begin", train_begin, None)
    around("on_train_end", None, train_end)
    around("on_epoch_begin", epoch_begin, None)
    around("on_epoch_end", None, epoch_end)
    around("on_train_batch_begin", batch_begin, None)
    around("on_train_batch_end", None, batch_end)

    for word, phase in (("test", "evaluate"), ("predict", "predict")):
        # Outside of a training nobody else says where the parameters lie; a model that is built by its first batch has them at the end.
        def begin(self: Any, *_: Any, _phase: str = phase) -> None:
            alone = not training.inside_loop()
            training.enter_loop()
            _begin(PHASE, _phase)
            if alone:
                training.tag_variables()

        def end(self: Any, *_: Any, _phase: str = phase) -> None:
            _end(PHASE, _phase)
            training.leave_loop()
            if not training.inside_loop():
                training.tag_variables()

        def one_begin(self: Any, batch: int = 0, *_: Any, _phase: str = phase) -> None:
            _begin(BATCH, _phase, int(batch) + 1)

        def one_end(self: Any, batch: int = 0, *_: Any, _phase: str = phase) -> None:
            _end(BATCH, _phase, _last_batch(self, batch))

        around(f"on_{word}_begin", begin, None)
        around(f"on_{word}_end", None, end)
        around(f"on_{word}_batch_begin", one_begin, None)
        around(f"on_{word}_batch_end", None, one_end)


def _watch_metrics(metric_type: type) -> None:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            keras_variables.track_metric(self)
        return init

    wrap(metric_type, "__init__", make)


def _watch_layers(layer_type: type, model_type: type, metric_type: type) -> None:
    def make_call(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            parent = layers.current()
            path = layers.path_below(parent, self.name, isinstance(self, model_type))
            # Never in a variable of this frame: it would hold itself, and with it the layer's tensors until the next garbage collection.
            label = path or f"({self.name})"
            layers.push(layers.Call(path, layers.built(self), sys._getframe(), label))
            eager = not training.is_tracing()
            if eager:
                begin = training.tensor_number()
                emit.mark(LAYER, BEGIN, label)
            try:
                return original(self, *args, **kwargs)
            finally:
                if eager:
                    emit.mark(LAYER, END, label)
                    layers.eager_calls().add(begin, training.tensor_number(), layers.Call(path, layers.built(self), None, label))
                layers.pop()
        return call

    wrap(layer_type, "__call__", make_call)
    _watch_construction(layer_type, model_type, metric_type)


def _watch_construction(layer_type: type, model_type: type, metric_type: type) -> None:
    """Through `__new__`: Keras reads the argument names of `__init__`, which must stay as it is."""
    original = layer_type.__new__
    if hasattr(original, "__vramscope_original__"):
        return

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        layer = original(cls) if original is object.__new__ else original(cls, *args, **kwargs)
        if isinstance(layer, layer_type) and not isinstance(layer, metric_type):      # in Keras 2 a metric is a layer
            frame = sys._getframe(1)
            emit.quietly(lambda: layers.remember_built(layer, _line_of_construction(frame)))
            keras_variables.track(layer, isinstance(layer, model_type))
        return layer

    new.__vramscope_original__ = original  # type: ignore[attr-defined]
    layer_type.__new__ = new  # type: ignore[method-assign, assignment]


def _line_of_construction(frame: Any) -> Optional[lines.Line]:
    """The user's line that makes the layer; for a layer that another one makes in its `build` or `call`, where that one was made."""
    found = lines.user_frame(frame, stop=layers.outermost_frame())
    if found is not None:
        return lines.of_frame(found)
    parent = layers.current()
    return None if parent is None else parent.built
