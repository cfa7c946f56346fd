"""Lightning: marks for epochs and batches, and the memory of each as a table.

Under `vramscope run`, the marks need no code. For the table:

    memory = vramscope.lightning.MemoryCallback()
    Trainer(callbacks=[memory]).fit(model)
    print(memory.table())
"""
from __future__ import annotations

import sys
from typing import Any, Container, List, Optional, Sequence, Union

from . import _recorder
from ._rows import MemoryRows, Row
from ._torch.loop import BEGIN, END, Loop, name_model

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback as _Callback
else:
    from lightning.pytorch import Callback as _Callback

__all__ = ["MarkCallback", "MemoryCallback", "Row", "callbacks"]


class MarkCallback(_Callback):
    """Reports the progress of training to the recorder. Does nothing if nothing is recorded."""

    def __init__(self) -> None:
        self._loop = Loop()

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._loop.begin()
        name_model(pl_module)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._loop.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._loop.end()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._loop.epoch(trainer.current_epoch + 1, BEGIN)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._loop.epoch(trainer.current_epoch + 1, END)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        # global_step counts optimizer steps; with gradient accumulation several batches have the same.
        self._loop.step_begin("train", batch_idx + 1)

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        self._loop.step_end()

    def on_validation_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._loop.step_begin("evaluate", batch_idx + 1)

    def on_validation_batch_end(self, *_: Any, **__: Any) -> None:
        self._loop.step_end()

    def on_test_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._loop.step_begin("evaluate", batch_idx + 1)

    def on_test_batch_end(self, *_: Any, **__: Any) -> None:
        self._loop.step_end()

    def on_predict_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._loop.step_begin("predict", batch_idx + 1)

    def on_predict_batch_end(self, *_: Any, **__: Any) -> None:
        self._loop.step_end()


class MemoryCallback(_Callback, MemoryRows):
    """Reads current and peak memory at the start and end of each epoch and of the batches in `target_batches`; see vramscope.keras."""

    def __init__(self, devices: Union[str, Sequence[str], None] = None, target_batches: Union[Container[int], str] = (),
                 reset: Optional[str] = None, log_to: Union[str, Sequence[str]] = ()) -> None:
        MemoryRows.__init__(self, devices, target_batches, reset, log_to)

    def _epoch(self, trainer: Any) -> Optional[int]:
        return trainer.current_epoch + 1 if getattr(trainer.state.fn, "value", "") == "fit" else None

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.read("train", trainer.current_epoch + 1, None, "begin")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.read("train", trainer.current_epoch + 1, None, "end")

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.read("train", trainer.current_epoch + 1, batch_idx + 1, "begin")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.read("train", trainer.current_epoch + 1, batch_idx + 1, "end")

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self.read("evaluate", self._epoch(trainer), None, "begin")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self.read("evaluate", self._epoch(trainer), None, "end")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self.read("evaluate", None, None, "begin")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self.read("evaluate", None, None, "end")

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self.read("predict", None, None, "begin")

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self.read("predict", None, None, "end")


def callbacks() -> List[Any]:
    """For Lightning's entry-point group: the marks, if something is recorded."""
    return [MarkCallback()] if _recorder.loaded() is not None else []
