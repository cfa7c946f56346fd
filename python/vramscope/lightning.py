"""Lightning: marks for epochs and batches, and the memory of each as a table.

Under `vramscope run`, the marks need no code. For the table:

    memory = vramscope.lightning.MemoryCallback()
    Trainer(callbacks=[memory]).fit(model)
    print(memory.table())

`Trainer(callbacks=[vramscope.lightning.BatchSizeFinder(on="24GiB")])` sets the largest batch size that fits, without trying until it fails.
"""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Container, List, Optional, Sequence, Union

from . import _recorder
from ._rows import MemoryRows, Row
from ._torch.loop import BEGIN, END, Loop, name_model

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback as _Callback
else:
    from lightning.pytorch import Callback as _Callback

if TYPE_CHECKING:
    from ._largest import LargestBatch

__all__ = ["BatchSizeFinder", "MarkCallback", "MemoryCallback", "Row", "callbacks"]


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


class BatchSizeFinder(_Callback):
    """Before fit(), sets the batch size of the module or data module to the largest that fits: a forecast from a few steps at two small batches,
    confirmed by one step. Their `train_dataloader` must use that attribute. `found` is the answer, as of `vramscope.torch.largest_batch`.

    on: a size such as "24GiB", or a card such as "H100-80GB". limit: of PyTorch's pool, instead of a device.
    attribute: that holds the batch size. The module needs automatic optimization.
    """

    def __init__(self, on: Optional[str] = None, limit: Optional[str] = None, attribute: str = "batch_size", confirm: bool = True) -> None:
        self.found: Optional["LargestBatch"] = None
        self._options = (on, limit, confirm)
        self._attribute = attribute

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        from .torch import largest_batch
        data = trainer.datamodule if hasattr(trainer.datamodule, self._attribute) else pl_module
        if not hasattr(data, self._attribute):
            raise AttributeError(f"neither the module nor the data module has \"{self._attribute}\"; name the attribute with attribute=")
        sample = next(iter((trainer.datamodule or pl_module).train_dataloader()))
        pl_module.log = lambda *_, **__: None       # nothing is collected outside of the trainer's loop
        try:
            self.found = largest_batch(lambda batch: _train(trainer, pl_module, batch), sample, *self._options, keep=[pl_module, *trainer.optimizers])
        finally:
            del pl_module.log
        if self.found.batch == 0:
            raise MemoryError(self.found.sentence)
        setattr(data, self._attribute, self.found.batch)


def _train(trainer: Any, module: Any, batch: Any) -> None:
    with trainer.strategy.precision_plugin.train_step_context():
        result = module.training_step(trainer.strategy.batch_to_device(batch), 0)
    (result["loss"] if isinstance(result, dict) else result).backward()
    for optimizer in trainer.optimizers:
        optimizer.step()
        optimizer.zero_grad()


def callbacks() -> List[Any]:
    """For Lightning's entry-point group: the marks, if something is recorded."""
    return [MarkCallback()] if _recorder.loaded() is not None else []
