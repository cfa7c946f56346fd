"""`MemoryCallback`: the memory of each epoch and of selected batches of a Keras model, as history, table, plot, CSV and TensorBoard scalars.

    memory = vramscope.keras.MemoryCallback()
    model.fit(x, y, callbacks=[memory])
    memory.summary()
    memory.plot("memory.svg")

`compare` measures several models, each by itself. `largest_batch` finds the largest batch that fits on a device.
"""
from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Container, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _units
from ._comparison import Comparison
from ._memory import MemoryInfo, memory_info
from ._rows import Answers, Pace, Row, Spans, check_choices, device_names
from ._trackers import Trackers

if TYPE_CHECKING:
    from ._largest import LargestBatch

if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true") or ("tf_keras" in sys.modules and "keras" not in sys.modules):
    import tf_keras as _keras
else:
    import keras as _keras

__all__ = ["Comparison", "MemoryCallback", "Row", "compare", "largest_batch"]
_MIB = 1 << 20


class MemoryCallback(_keras.callbacks.Callback, Answers):
    """Reads current and peak memory at the start and end of each epoch and of the batches in `target_batches`.

    Epochs and batches are numbered as in Keras' progress bar, from 1. TensorBoard's points are where Keras' own TensorBoard callback
    has them: epochs from 0, batches counted from 1 since the training began.

    devices: names such as 'GPU:0'; default: those of the model's distribution strategy, else the first GPU, else the CPU.
    target_batches: numbers from 1 (in each epoch), or "all". With steps_per_execution, a batch stands for its whole group.
    reset: when the peak is reset (for TensorFlow's own counter too): "run", at the start of fit(), evaluate() or predict(); "epoch", also at the
        start of each epoch and evaluation; "batch", also at the start of each batch; None, never. Unless it is None, fit() starts with a
        garbage collection, so that an earlier model does not count.
    log_dir: folder for TensorBoard scalars, one point per epoch, evaluation and selected batch, with the values of the rows.
    metric: shows the peak in the progress bar and stores it in Keras' own history, in MiB.
    log_to: "wandb", "mlflow", "comet", or several of them: also sends those points to the run that is active there.
    """

    def __init__(self, devices: Union[str, Sequence[str], None] = None, target_batches: Union[Container[int], str] = (),
                 reset: Optional[str] = "run", log_dir: Union[str, "os.PathLike[str]", None] = None, metric: bool = False, prefix: str = "memory",
                 log_to: Union[str, Sequence[str]] = ()) -> None:
        super().__init__()
        check_choices(target_batches, reset, ("run", "epoch", "batch", None))
        if log_dir is not None and not isinstance(log_dir, (str, os.PathLike)):
            raise TypeError(f"log_dir={log_dir!r}: expected the name of a folder")
        self.devices: List[str] = device_names(devices)
        self.rows = []
        self.in_use_before: Dict[str, int] = {}     # device -> bytes in use when the first training began, besides the model's variables
        self._asked = bool(self.devices)
        self._targets, self._reset, self._metric, self._prefix = target_batches, reset, metric, prefix
        self._log_dir, self._writer = log_dir, None
        self._trackers = Trackers(log_to, prefix)
        self._epoch: Optional[int] = None
        self._batches: Dict[str, int] = {}          # phase -> as Keras' TensorBoard callback counts them
        self._first_of_group = 0
        self._first = True                          # nothing was read in this run
        self._spans, self._pace = Spans(), Pace()

    @property
    def seconds_per_step(self) -> Optional[float]:
        """Of the newest epoch, without its first batch; None if it had only one."""
        return self._pace.seconds

    # --- Keras calls these ---------------------------------------------------------------------------------------------------

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        if not self._asked:
            self.devices = _devices_of(model)
        self._trackers.check()
        for device in self.devices:
            memory_info(device)         # an unknown device fails here, not in the middle of the training
        self._epoch, self._spans, self._first = None, Spans(), True         # a new run, also after one that failed

    def on_train_begin(self, logs: Any = None) -> None:
        if self._reset is not None:
            gc.collect()                # so that what is left of an earlier model does not count
        self._batches["train"] = 0
        if not self.in_use_before:
            own = _bytes_of_variables(self.model)
            self.in_use_before = {device: max(0, memory_info(device).current - own) for device in self.devices}

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch + 1
        self._pace.epoch_begins()
        self._begin("train", None)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._end("train", None, logs)
        self._epoch = None

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._batch_begin("train", batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._pace.batch_ended(batch)
        self._batch_end("train", batch, logs)

    def on_test_begin(self, logs: Any = None) -> None:
        self._begin("evaluate", None)

    def on_test_end(self, logs: Any = None) -> None:
        self._end("evaluate", None, None)
        if self._epoch is None:         # not within fit()
            self._let_go()

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._batch_begin("evaluate", batch)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._batch_end("evaluate", batch, None)

    def on_predict_begin(self, logs: Any = None) -> None:
        self._begin("predict", None)

    def on_predict_end(self, logs: Any = None) -> None:
        self._end("predict", None, None)
        self._let_go()

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._batch_begin("predict", batch)

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        self._batch_end("predict", batch, None)

    def on_train_end(self, logs: Any = None) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._let_go()

    def _let_go(self) -> None:
        """Keras stores the model in every callback. This callback may be kept for its numbers and must not keep the model's memory alive."""
        if hasattr(self, "_model"):
            self._model = None
        else:
            self.model = None

    # --- what it does then ---------------------------------------------------------------------------------------------------

    def _wanted(self, first: int, last: int) -> bool:
        return self._targets == "all" or any(batch in self._targets for batch in range(first, last + 1))

    def _batch_begin(self, phase: str, batch: int) -> None:
        self._first_of_group = batch + 1
        self._batches[phase] = self._batches.get(phase, 0) + 1
        if self._targets:
            # Whether a later batch of the group is wanted is known only at its end; so each group begins with a row that may go again.
            self._begin(phase, batch + 1)

    def _batch_end(self, phase: str, batch: int, logs: Any) -> None:
        if self._targets:
            if self._wanted(self._first_of_group, batch + 1):
                self._end(phase, self._first_of_group, logs)
            else:
                del self.rows[-len(self.devices):]
                self._spans.end(phase, self._first_of_group)
        if self._metric and logs is not None:
            self._show(logs, [memory_info(device).peak for device in self.devices])

    def _begin(self, phase: str, batch: Optional[int]) -> None:
        anew = self._reset == "batch" or (self._reset == "epoch" and batch is None) or (self._reset == "run" and self._first)
        self._first = False
        self._spans.begin(phase, batch, self.devices, anew)
        self._read(phase, batch, "begin", {})

    def _end(self, phase: str, batch: Optional[int], logs: Any) -> None:
        infos = self._read(phase, batch, "end", self._spans.end(phase, batch))
        if self._metric and logs is not None:
            self._show(logs, [info.peak for info in infos])
        if self._log_dir is not None:
            self._to_tensorboard(phase, batch, infos)
        self._trackers.add(*self._axis(phase, batch), infos)

    def _read(self, phase: str, batch: Optional[int], at: str, before: Mapping[str, int]) -> List[MemoryInfo]:
        """The one place where memory is read for the rows and for TensorBoard."""
        infos = []
        for device in self.devices:
            info = memory_info(device, fresh=self._log_dir is not None and at == "end")
            infos.append(info._replace(peak=max(info.peak, before.get(device, 0))))
        self.rows += [Row(phase, self._epoch, batch, at, info.device, info.current, info.peak) for info in infos]
        return infos

    def _show(self, logs: Any, peaks: Sequence[int]) -> None:
        logs["peak_mib"] = max(peaks) / _MIB

    def _to_tensorboard(self, phase: str, batch: Optional[int], infos: Sequence[MemoryInfo]) -> None:
        from . import tensorboard
        if self._writer is None:
            self._writer = tensorboard.Writer(os.path.join(str(self._log_dir), "memory"))
        axis, step = self._axis(phase, batch)
        scalars: Dict[str, Optional[float]] = {}
        for info in infos:
            scalars.update(tensorboard.memory_scalars(info, f"{self._prefix}/{axis}"))
        self._writer.add(scalars, step)

    def _axis(self, phase: str, batch: Optional[int]) -> Tuple[str, int]:
        """The name of a step axis and the place on it, as Keras' TensorBoard callback has them: each axis counts one thing."""
        if batch is not None:
            return f"{phase} batch", self._batches[phase]
        if self._epoch is not None:
            return phase, self._epoch - 1
        optimizer = getattr(self.model, "optimizer", None)
        return f"{phase} vs iterations", int(optimizer.iterations) if optimizer is not None else 0


def _bytes_of_variables(model: Any) -> int:
    """Of the model and its optimizer, without what allocators add."""
    import tensorflow as tf
    optimizer = getattr(model, "optimizer", None)
    slots = getattr(optimizer, "variables", ())
    variables = {id(one): one for one in [*model.variables, *(slots() if callable(slots) else slots)]}
    return sum(tf.TensorShape(one.shape).num_elements() * tf.as_dtype(one.dtype).size for one in variables.values())


Train = Callable[[MemoryCallback], object]
_MUCH = 0.02        # of the peak


def compare(models: Mapping[str, Union[Train, MemoryCallback]], devices: Union[str, Sequence[str], None] = None) -> Comparison:
    """The peaks of several models, and the time of a training step, as a table and a grouped bar plot.

        def small(memory):
            build(16).fit(x, y, callbacks=[memory])

        print(vramscope.keras.compare({"small": small, "large": large}))

    Each function builds one model and trains it with the callback that it is given. Before each of them Keras' session is cleared, garbage is
    collected and the peak is reset; its figures are those above what TensorFlow still keeps then ("in use before"), so that a model is measured
    by itself.

    Callbacks that models were trained with already are taken as well: `compare({"a": memory_of_a, "b": memory_of_b})`. A callback resets the
    peak itself when the training begins, but what is there then, such as another model, counts in its peak; a note below the table says so.
    """
    if not models:
        raise ValueError("compare(): expected at least one name and function")
    if not hasattr(models, "items") or not all(isinstance(one, Answers) or callable(one) for one in models.values()):
        raise TypeError('compare(): expected names and functions that train with the callback they are given, as in compare({"a": train_a, "b": train_b})')
    measured = {name: one if isinstance(one, Answers) else _measure(name, one, devices) for name, one in models.items()}
    phases = [phase for phase in ("train", "evaluate", "predict") if any(one.peak(phase) is not None for one in measured.values())]
    by_itself = {name for name, one in models.items() if one is not measured[name]}
    columns: Dict[str, Dict[str, Optional[int]]] = {}
    notes = []
    for name, one in measured.items():
        in_use = {row.device: getattr(one, "in_use_before", {}).get(row.device, 0) for row in one.rows}
        before = max(in_use.values(), default=0)
        figures = _on_fullest_device(one, phases, in_use if name in by_itself else {})
        if name not in by_itself and before > _MUCH * max(one.peak(phase) or 0 for phase in phases):
            notes.append(f"{name}: {_units.size(before)} was in use when it began, besides its variables, and is part of its peak.")
        if one._reset is None:
            notes.append(f"{name}: its peak was never reset (reset=None) and may be that of what ran before.")
        columns[name] = {**figures, "in use before": before}
    if by_itself:
        notes.insert(0, "Each model was measured by itself: session cleared, garbage collected, peak reset; figures are above what was in use before.")
    seconds = {name: getattr(one, "seconds_per_step", None) for name, one in measured.items()}
    return Comparison("model", columns, notes, seconds if any(each is not None for each in seconds.values()) else None)


def _on_fullest_device(memory: Answers, phases: Sequence[str], in_use: Mapping[str, int]) -> Dict[str, Optional[int]]:
    """Peaks and the end, above what was in use before: of several devices the highest, because each has to have room for its own."""
    def highest(values: Mapping[str, Optional[int]]) -> Optional[int]:
        return max((value - in_use.get(device, 0) for device, value in values.items() if value is not None), default=None)

    devices = dict.fromkeys(row.device for row in memory.rows)
    figures = {f"{phase} peak": highest({device: memory.peak(phase, device) for device in devices}) for phase in phases}
    return {**figures, "at the end": highest({row.device: row.current for row in memory.rows if row.at == "end"})}


def _measure(name: str, train: Train, devices: Union[str, Sequence[str], None]) -> MemoryCallback:
    memory = MemoryCallback(devices)
    _keras.backend.clear_session()
    # Which devices the training uses, a strategy decides later.
    memory.in_use_before = _collected(memory.devices or [info.device for info in memory_info()])
    train(memory)
    if not memory.rows:
        raise ValueError(f"compare(): \"{name}\" did not use the callback that it was given; pass it to fit(callbacks=[...])")
    return memory


def _collected(devices: Sequence[str]) -> Dict[str, int]:
    """Collects garbage until nothing more is freed, and returns what is in use then: objects with finalizers take several collections."""
    in_use = {device: memory_info(device).current for device in devices}
    while True:
        gc.collect()
        now = {device: memory_info(device).current for device in devices}
        if sum(now.values()) >= sum(in_use.values()):
            return now
        in_use = now


def _devices_of(model: Any) -> List[str]:
    strategy = getattr(model, "distribute_strategy", None) or getattr(model, "_distribute_strategy", None)
    try:
        workers = getattr(getattr(strategy, "extended", None), "worker_devices", ())
    except RuntimeError:        # the default strategy refuses the question
        workers = ()
    names = [name.rsplit("/", 1)[-1].replace("device:", "") for name in workers]
    if len(names) > 1 or any("GPU" in name for name in names):
        return names
    return _first_device()


def _first_device() -> List[str]:
    from .tf import default_device
    return [default_device()]


def largest_batch(model: Any, sample_batch: Any, on: Optional[str] = None, limit: Optional[str] = None, confirm: bool = True) -> "LargestBatch":
    """The largest batch with which a compiled model trains on a device, from a few steps at two small batches and one at the result.

    sample_batch: (x, y) or (x, y, weights) as for `train_on_batch`; its samples are repeated for larger batches.
    on: a size such as "16GiB", or a card such as "H100-80GB". limit: of TensorFlow's pool, instead of a device.
    confirm: train one step with the batch that was found, which this machine must be able to do.

    The model's variables and its optimizer's get their values back.
    """
    import numpy as np
    from . import _largest

    def train(size: int) -> None:
        model.train_on_batch(*_largest.resized(sample_batch, size, lambda array, rows: np.asarray(array)[rows]))

    if not isinstance(sample_batch, tuple):
        raise TypeError("sample_batch: expected (x, y) as for train_on_batch")
    samples = _largest.samples_in(sample_batch)
    if not model.built:
        model(_largest.resized(sample_batch[0], 1, lambda array, rows: np.asarray(array)[rows]))
    model.optimizer.build(model.trainable_variables)
    kept = [(variable, np.array(variable)) for variable in [*model.variables, *_variables_of(model.optimizer)]]
    try:
        return _largest.find(train, samples, on, limit, confirm)
    finally:
        for variable, value in kept:
            variable.assign(value)


def _variables_of(optimizer: Any) -> Sequence[Any]:
    variables = optimizer.variables
    return variables() if callable(variables) else variables
