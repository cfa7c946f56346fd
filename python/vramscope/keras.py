"""`MemoryCallback`: the memory of each epoch and of chosen batches of a Keras model, as history, table, plot and TensorBoard scalars.

    memory = vramscope.keras.MemoryCallback()
    model.fit(x, y, callbacks=[memory])
    print(memory.table())
    memory.plot("memory.svg")
    print(vramscope.keras.compare({"small": memory, "large": other}).table())
"""
from __future__ import annotations

import os
import sys
from typing import Any, Container, Dict, List, Mapping, Optional, Sequence, Union

from . import _chart, _units
from ._memory import memory_info
from ._rows import Answers, Row, Spans, check_choices, device_names
from ._table import text_table

if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true") or ("tf_keras" in sys.modules and "keras" not in sys.modules):
    import tf_keras as _keras
else:
    import keras as _keras

__all__ = ["Comparison", "MemoryCallback", "Row", "compare"]
_MIB = 1 << 20


class MemoryCallback(_keras.callbacks.Callback, Answers):
    """Reads current and peak at the begin and end of each epoch and of the batches in `target_batches`.

    devices: names as 'GPU:0'; default: those of the model's distribution strategy, else the first GPU, else the CPU.
    target_batches: numbers from 1 (in each epoch), or "all". With steps_per_execution a batch stands for its whole group.
    reset: "epoch" or "batch" starts the peak anew at each begin, so that a peak belongs to that epoch, evaluation or batch; None never does.
    log_dir: TensorBoard scalars, one point an epoch and a chosen batch.
    metric: shows the peak in the progress bar and keeps it in Keras' own history, in MiB.
    """

    def __init__(self, devices: Union[str, Sequence[str], None] = None, target_batches: Union[Container[int], str] = (),
                 reset: Optional[str] = None, log_dir: Optional[str] = None, metric: bool = False, prefix: str = "memory") -> None:
        super().__init__()
        check_choices(target_batches, reset)
        self.devices: List[str] = device_names(devices)
        self.rows = []
        self._asked = bool(self.devices)
        self._targets, self._reset, self._metric, self._prefix = target_batches, reset, metric, prefix
        self._log_dir, self._writer, self._points = log_dir, None, 0
        self._epoch: Optional[int] = None
        self._first_of_group = 0
        self._spans = Spans()

    # --- Keras calls these ---------------------------------------------------------------------------------------------------

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        if not self._asked:
            self.devices = _devices_of(model)
        for device in self.devices:
            memory_info(device)         # an unknown device fails here, not in the middle of the training

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch + 1
        self._begin("train", None)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._end("train", None, logs)
        self._epoch = None

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._batch_begin("train", batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._batch_end("train", batch, logs)

    def on_test_begin(self, logs: Any = None) -> None:
        self._begin("evaluate", None)

    def on_test_end(self, logs: Any = None) -> None:
        self._end("evaluate", None, None)
        if self._epoch is None:
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
        """Keras gives every callback its model for good; this one is kept for its numbers and must not keep the model's memory."""
        if hasattr(self, "_model"):
            self._model = None
        else:
            self.model = None

    # --- what it does then ---------------------------------------------------------------------------------------------------

    def _wanted(self, first: int, last: int) -> bool:
        return self._targets == "all" or any(batch in self._targets for batch in range(first, last + 1))

    def _batch_begin(self, phase: str, batch: int) -> None:
        self._first_of_group = batch + 1
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
        self._spans.begin(phase, batch, self.devices, self._reset == "batch" or (self._reset == "epoch" and batch is None))
        self._read(phase, batch, "begin", {})

    def _end(self, phase: str, batch: Optional[int], logs: Any) -> None:
        self._read(phase, batch, "end", self._spans.end(phase, batch))
        if self._metric and logs is not None:
            self._show(logs, [row.peak for row in self.rows[-len(self.devices):]])
        if self._log_dir is not None:
            self._to_tensorboard(phase)

    def _read(self, phase: str, batch: Optional[int], at: str, before: Mapping[str, int]) -> None:
        for device in self.devices:
            info = memory_info(device)
            self.rows.append(Row(phase, self._epoch, batch, at, device, info.current, max(info.peak, before.get(device, 0))))

    def _show(self, logs: Any, peaks: Sequence[int]) -> None:
        logs["peak_mib"] = max(peaks) / _MIB

    def _to_tensorboard(self, phase: str) -> None:
        from . import tensorboard
        if self._writer is None:
            self._writer = tensorboard.Writer(os.path.join(str(self._log_dir), "memory"))
        scalars: Dict[str, Optional[float]] = {}
        for device in self.devices:
            scalars.update(tensorboard.memory_scalars(device, f"{self._prefix}/{phase}", fresh=True))
        self._writer.add(scalars, self._points)
        self._points += 1


class Comparison:
    """Several models side by side."""

    def __init__(self, callbacks: Mapping[str, MemoryCallback]) -> None:
        if not callbacks:
            raise ValueError("nothing to compare")
        if not hasattr(callbacks, "items") or not all(isinstance(callback, Answers) for callback in callbacks.values()):
            raise TypeError('compare({"a": callback, "b": other}): names and the callbacks that were trained with')
        self.peaks: Dict[str, Dict[str, Optional[int]]] = {}
        phases = [phase for phase in ("train", "evaluate", "predict") if any(cb.peak(phase) is not None for cb in callbacks.values())]
        for name, callback in callbacks.items():
            self.peaks[name] = {f"{phase} peak": callback.peak(phase) for phase in phases}
            ends = [row.current for row in callback.rows if row.at == "end"]
            self.peaks[name]["at the end"] = ends[-1] if ends else None

    def table(self) -> str:
        names = list(next(iter(self.peaks.values())))
        return text_table(["model", *names], [[model, *(_units.size(values[n]) for n in names)] for model, values in self.peaks.items()])

    def plot(self, path: Optional[_chart.Path] = None) -> Any:
        return _chart.draw_bars("Memory by model", self.peaks, path)

    def __str__(self) -> str:
        return self.table()


def compare(callbacks: Mapping[str, MemoryCallback]) -> Comparison:
    """`compare({"a": cb1, "b": cb2})`: a table and a grouped bar plot of the peaks of several models."""
    return Comparison(callbacks)


def _devices_of(model: Any) -> List[str]:
    strategy = getattr(model, "distribute_strategy", None) or getattr(model, "_distribute_strategy", None)
    try:
        workers = getattr(getattr(strategy, "extended", None), "worker_devices", ())
    except RuntimeError:        # the default strategy refuses the question
        workers = ()
    names = [name.rsplit("/", 1)[-1].replace("device:", "") for name in workers]
    if len(names) > 1 or any("GPU" in name for name in names):
        return names
    import tensorflow as tf
    return ["GPU:0"] if tf.config.list_physical_devices("GPU") else ["CPU:0"]
