"""Hugging Face's Trainer: marks for epochs and steps, and the memory of each as a table.

Under `vramscope run`, the marks need no code. For the table:

    memory = vramscope.transformers.MemoryCallback()
    Trainer(..., callbacks=[memory]).train()
    print(memory.table())
"""
from __future__ import annotations

from typing import Any, Container, Optional, Sequence, Union

from transformers import TrainerCallback

from ._rows import MemoryRows, Row
from ._torch.loop import BEGIN, END, Loop, name_model

__all__ = ["MarkCallback", "MemoryCallback", "Row"]


def _epoch(state: Any) -> Optional[int]:
    """Counted from 1; the Trainer counts in fractions."""
    return None if state.epoch is None else int(state.epoch + 1e-6) + 1


class MarkCallback(TrainerCallback):
    """Reports the progress of training to the recorder. Does nothing if nothing is recorded."""

    def __init__(self) -> None:
        self._loop = Loop()
        self._predictions = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self._loop.begin()
        if model is not None:
            name_model(model)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._loop.end()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._loop.epoch(_epoch(state) or 1, BEGIN)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._loop.step_end()
        self._loop.epoch(max(1, round(state.epoch or 1)), END)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._loop.step_begin("train", state.global_step + 1)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._loop.step_end()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Called after each one: the next begins here.
        self._predictions += 1
        self._loop.step_end()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._loop.step_end()


class MemoryCallback(TrainerCallback, MemoryRows):
    """Reads current and peak memory at the start and end of each epoch and of the steps in `target_batches`; see vramscope.keras."""

    def __init__(self, devices: Union[str, Sequence[str], None] = None, target_batches: Union[Container[int], str] = (),
                 reset: Optional[str] = None, log_to: Union[str, Sequence[str]] = ()) -> None:
        MemoryRows.__init__(self, devices, target_batches, reset, log_to)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.read("train", _epoch(state) or 1, None, "begin")

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.read("train", max(1, round(state.epoch or 1)), None, "end")
        self._evaluation_follows(state, control)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.read("train", _epoch(state), state.global_step + 1, "begin")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.read("train", _epoch(state), state.global_step, "end")
        self._evaluation_follows(state, control)

    def _evaluation_follows(self, state: Any, control: Any) -> None:
        """The Trainer reports only the end of an evaluation, but it is known in advance that one comes next."""
        if control.should_evaluate:
            self.read("evaluate", _epoch(state), None, "begin")

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.read("evaluate", _epoch(state), None, "end")
