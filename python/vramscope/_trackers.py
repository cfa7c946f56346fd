"""Sends the readings of a callback to Weights & Biases, MLflow or Comet: through their own clients, into the run that the program has started."""
from __future__ import annotations

import importlib
import os
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Set, Tuple, Union
from weakref import WeakKeyDictionary

_MIB = 1 << 20
Values = Dict[str, float]


class _Tracker(NamedTuple):
    module: str
    start: str                                      # what the program calls to start a run
    run: Callable[[Any], Any]                       # the active run; None: there is none
    log: Callable[[Any, Any, Values, str, int], object]


# Of each run of Weights & Biases: the step of the row that it has not written yet, and our axes in that row.
_unwritten: "WeakKeyDictionary[Any, Tuple[int, Set[str]]]" = WeakKeyDictionary()


def _log_wandb(_: Any, run: Any, values: Values, axis: str, step: int) -> None:
    # Our metrics have an axis of their own. The program may count the steps of the run, and W&B drops what it logs at one that is over: so
    # a reading goes into the row that the program writes next, and a new row begins only where that one has a reading of this axis.
    step_metric = f"{axis}/step"
    for name in values:
        run.define_metric(name, step_metric=step_metric)
    at, axes = _unwritten.get(run, (run.step, set()))
    if at == run.step and axis in axes:
        run.log({}, commit=True)
    if at != run.step:
        axes = set()
    run.log({**values, step_metric: step}, commit=False)
    _unwritten[run] = run.step, axes | {axis}


_TRACKERS = {
    "wandb": _Tracker("wandb", "wandb.init()", lambda wandb: wandb.run, _log_wandb),
    "mlflow": _Tracker("mlflow", "mlflow.start_run()", lambda mlflow: mlflow.active_run(),
                       lambda mlflow, _, values, axis, step: mlflow.log_metrics(values, step=step)),
    "comet": _Tracker("comet_ml", "comet_ml.start()", lambda comet: comet.get_running_experiment(),
                      lambda _, run, values, axis, step: run.log_metrics(values, step=step)),
}


class Trackers:
    """Where `log_to` says. A client that fails is reported once and then left alone: the training continues."""

    def __init__(self, log_to: Union[str, Sequence[str]], prefix: str = "memory") -> None:
        names = [log_to] if isinstance(log_to, str) else list(log_to)
        for name in names:
            if name not in _TRACKERS:
                raise ValueError(f"log_to={name!r}: expected one of {', '.join(map(repr, _TRACKERS))}")
        # Ranks of a distributed training would write to the same names, and only the first one has a run as a rule.
        self._names: List[str] = names if os.environ.get("RANK", "0") == "0" else []
        self._modules = {name: importlib.import_module(_TRACKERS[name].module) for name in self._names}
        self._prefix = prefix

    def check(self) -> None:
        """Raises RuntimeError if no run is active: at the start of the training, not after its first epoch."""
        for name in self._names:
            if _TRACKERS[name].run(self._modules[name]) is None:
                raise RuntimeError(f"log_to={name!r}: no active run; call {_TRACKERS[name].start} before training starts")

    def add(self, axis: str, step: int, readings: Sequence[Any]) -> None:
        """readings: one per device, with `device`, `current` and `peak` in bytes."""
        axis = f"{self._prefix}/{axis}".replace(" ", "_")
        values: Values = {}
        for reading in readings:
            # MLflow accepts few characters besides letters and digits in names.
            device = reading.device.replace(":", "").lower()
            values[f"{axis}/{device}/current_mib"] = reading.current / _MIB
            values[f"{axis}/{device}/peak_mib"] = reading.peak / _MIB
        for name in list(self._names):
            tracker, module = _TRACKERS[name], self._modules[name]
            try:
                tracker.log(module, tracker.run(module), values, axis, step)
            except Exception as error:
                self._names.remove(name)
                warnings.warn(f"vramscope: log_to={name!r}: {error}; no more readings are sent there", stacklevel=2)
