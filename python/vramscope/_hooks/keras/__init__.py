"""Keras 2 and 3: epochs, batches, evaluation and saving become marks; layers get the names and lines that users know."""
from __future__ import annotations

import importlib
import itertools
import sys
import threading
from types import ModuleType
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from ..._schema import BATCH, BEGIN, END, EPOCH, LAYER, PHASE, STEP
from .. import emit, keras_batches, keras_building, keras_optimizers, keras_variables, layers, lines, training, walking
from ..wrapping import around, is_wrapped, wrap, wrap_phase

_train_steps = itertools.count(1)


def install(keras: ModuleType) -> None:
    root = keras.__name__
    emit.at_first_event(lambda: _settings(keras))
    callback_list = _first(root, "src.callbacks.callback_list", "src.callbacks").CallbackList
    _watch_training(callback_list)
    _watch_evaluation(callback_list, "test", "evaluate")
    _watch_evaluation(callback_list, "predict", "predict")
    layer = _first(root, "src.layers.layer", "src.engine.base_layer").Layer
    model = _first(root, "src.models.model", "src.engine.training").Model
    _watch_loops(model)
    keras_batches.install(root)
    keras_building.install()
    metric = _first(root, "src.metrics.metric", "src.metrics.base_metric").Metric
    _watch_layers(layer, model, metric)
    _watch_metrics(metric)
    keras_optimizers.install(_first(root, "src.optimizers.base_optimizer", "src.optimizers.optimizer"))
    training.describe_variables = keras_variables.describe
    jax_trainer = sys.modules.get(f"{root}.src.backend.jax.trainer")
    if jax_trainer is not None:
        from ..jax import keras_state
        keras_state.install(jax_trainer.JAXTrainer)
    for name in ("save", "save_weights", "export"):
        wrap_phase(model, name, "save")
    wrap_phase(model, "load_weights", "load")


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


def _last_batch(callbacks: Any, batch: int) -> int:
    """With steps_per_execution, Keras reports the last batch of a full execution, even if the data ends earlier."""
    steps = (getattr(callbacks, "params", None) or {}).get("steps")
    return min(int(batch) + 1, int(steps)) if steps else int(batch) + 1


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open: List[Tuple[int, str, int]] = []      # what a loop has started and not ended, innermost last: kind, name, number


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
    """A loop that raises (out of memory, an interrupt, a callback) never notifies its callbacks that it ended. A single batch
    has no callbacks: only the line that requested it is remembered."""
    def loop_begins(model: Any, *_: Any, **__: Any) -> int:
        emit.quietly(lambda: _name_models(model, model_type))
        return len(_thread.open)

    def batch_begins(model: Any, *_: Any, **__: Any) -> None:
        emit.quietly(lambda: _name_models(model, model_type))
        training.enter_single_batch()

    def loop_ended(depth: int, *_: Any, **__: Any) -> None:
        _end_all_above(depth)

    def pass_begins(model: Any, *_: Any, **__: Any) -> int:
        training.passes.running += 1
        return loop_begins(model)

    def pass_ended(depth: int, *_: Any, **__: Any) -> None:
        training.passes.running -= 1
        loop_ended(depth)

    for name, begins, ended in (("fit", loop_begins, loop_ended), ("evaluate", pass_begins, pass_ended), ("predict", pass_begins, pass_ended)):
        wrap(next(kind for kind in model_type.__mro__ if name in vars(kind)), name, begins, ended)
    for name in ("train_on_batch", "test_on_batch", "predict_on_batch"):
        wrap(next(kind for kind in model_type.__mro__ if name in vars(kind)), name,
             batch_begins, lambda *_, **__: training.leave_single_batch())


def _name_models(model: Any, model_type: type) -> None:
    """First by the models that contain others: a part that is used by itself before the whole is has its names there too."""
    keras_variables.name_inner_models(model_type)
    layers.name_models_in(model, model_type)


# The list of callbacks is notified of every event in the training loop's own thread, regardless of the callbacks in it. Wrapping
# its methods changes neither the list nor how Keras dispatches.
def _at(callback_list: type, name: str, before: Optional[Callable[..., None]] = None, after: Optional[Callable[..., None]] = None) -> None:
    # A callback that raises ends the training run, but this batch was run.
    wrap(callback_list, name,
         None if before is None else lambda self, *args, **__: before(self, *args),
         None if after is None else lambda token, ok, result, self, *args, **__: after(self, *args))


def _watch_training(callback_list: type) -> None:
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
        keras_batches.batch_begins(int(batch), (getattr(self, "params", None) or {}).get("steps"))
        _begin(BATCH, "train", int(batch) + 1)
        _begin(STEP, "train", self._vramscope_step)

    def batch_end(self: Any, batch: int = 0, *_: Any) -> None:
        _end(STEP, "train", getattr(self, "_vramscope_step", -1))
        _end(BATCH, "train", _last_batch(self, batch))
        training.step_done()

    _at(callback_list, "on_train_begin", before=train_begin)
    _at(callback_list, "on_train_end", after=train_end)
    _at(callback_list, "on_epoch_begin", before=epoch_begin)
    _at(callback_list, "on_epoch_end", after=epoch_end)
    _at(callback_list, "on_train_batch_begin", before=batch_begin)
    _at(callback_list, "on_train_batch_end", after=batch_end)


def _watch_evaluation(callback_list: type, word: str, phase: str) -> None:
    """Outside training, nothing else reports the addresses of parameters; a model that is built by its first batch has them at
    the end."""
    def begin(self: Any, *_: Any) -> None:
        alone = not training.inside_loop()
        training.enter_loop()
        _begin(PHASE, phase)
        if alone:
            training.tag_variables()

    def end(self: Any, *_: Any) -> None:
        _end(PHASE, phase)
        training.leave_loop()
        if not training.inside_loop():
            training.tag_variables()

    def batch_begin(self: Any, batch: int = 0, *_: Any) -> None:
        _begin(BATCH, phase, int(batch) + 1)

    def batch_end(self: Any, batch: int = 0, *_: Any) -> None:
        _end(BATCH, phase, _last_batch(self, batch))

    _at(callback_list, f"on_{word}_begin", before=begin)
    _at(callback_list, f"on_{word}_end", after=end)
    _at(callback_list, f"on_{word}_batch_begin", before=batch_begin)
    _at(callback_list, f"on_{word}_batch_end", after=batch_end)


def _watch_metrics(metric_type: type) -> None:
    def made(token: None, ok: bool, result: None, metric: Any, *_: Any, **__: Any) -> None:
        if ok:
            keras_variables.track_metric(metric)

    wrap(metric_type, "__init__", after=made)


class _Running(NamedTuple):
    """A call of a layer."""
    path: str
    label: str
    begin: int          # tensors that the call creates have higher numbers
    eager: bool
    anchor: int = 0
    building: Optional[Tuple[int, int]] = None      # the outermost call with symbols, outside of all graphs


def _watch_layers(layer_type: type, model_type: type, metric_type: type) -> None:
    def begins(layer: Any, /, *args: Any, **kwargs: Any) -> _Running:
        path = layers.path_below(layers.current(), layer, isinstance(layer, model_type))
        label = path or f"({layer.name})"
        caller = sys._getframe(1)
        outermost = layers.current() is None
        layers.push(layers.Call(path, layers.built(layer), id(caller), label))
        # A model that is put together calls its layers with symbols. Their paths in the model are not known before it is complete.
        tracing = training.is_tracing()
        if tracing or layers.is_symbolic(args, kwargs):
            return _Running(path, label, -1, False, walking.anchor(caller), keras_building.begins() if outermost and not tracing else None)
        emit.mark(LAYER, BEGIN, label)
        return _Running(path, label, layers.newest_of_call(args, kwargs), True)

    def ended(running: Optional[_Running], ok: bool, result: Any, layer: Any, /, *_: Any, **__: Any) -> None:
        if running is None:
            return
        if running.eager:
            emit.mark(LAYER, END, running.label)
            layers.eager_calls().add(running.begin + 1, layers.newest((result,)), layers.Call(running.path, layers.built(layer), 0, running.label))
        if running.building is not None:
            keras_building.ended(running.building, layers.built(layer))
        walking.release(running.anchor)
        layers.pop()

    wrap(layer_type, "__call__", begins, ended)
    _watch_construction(layer_type, model_type, metric_type)


def _watch_construction(layer_type: type, model_type: type, metric_type: type) -> None:
    """Wraps `__new__`, because Keras reads the argument names of `__init__`, which must stay as it is."""
    original = layer_type.__new__
    if is_wrapped(original):
        return

    def made(token: None, ok: bool, layer: Any, /, *_: Any, **__: Any) -> None:
        if ok and isinstance(layer, layer_type) and not isinstance(layer, metric_type):       # in Keras 2, a metric is a layer
            layers.remember_built(layer, _line_of_construction(sys._getframe(1)))
            keras_variables.track(layer, isinstance(layer, model_type))

    if original is object.__new__:          # which takes no further arguments
        original = lambda cls, *_, **__: object.__new__(cls)  # noqa: E731
    layer_type.__new__ = around(original, after=made)  # type: ignore[method-assign, assignment]


def _line_of_construction(frame: Any) -> Optional[lines.Line]:
    """The user's line that creates the layer. A layer that another layer creates in its `build` or `call` gets the line of that
    one."""
    found = lines.user_frame(frame, stop=layers.outermost_caller())
    if found is not None:
        return lines.of_frame(found)
    parent = layers.current()
    return None if parent is None else parent.built
