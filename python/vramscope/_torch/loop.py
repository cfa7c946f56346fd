"""Marks of a training loop that somebody else drives: Lightning's Trainer, Hugging Face's Trainer.

While one runs, its steps are the program's steps, and the optimizer's are not counted on their own.
"""
from __future__ import annotations

import ctypes

from .._hooks import emit, torch_frames, training
from .._schema import BATCH, BEGIN, END, EPOCH, STEP


def _mark_of(kind: str) -> int:
    return STEP if kind == "train" else BATCH


class Loop:
    def __init__(self) -> None:
        self._inside = False
        self._step_open = ""

    def begin(self) -> None:
        if not self._inside:
            self._inside = True
            training.enter_loop()
            library = torch_frames.library()
            if library is not None:
                library.vramscope_step_done(ctypes.c_int64(-1))     # from now on, this loop counts the steps

    def end(self) -> None:
        self.step_end()
        if self._inside:
            self._inside = False
            training.leave_loop()

    def epoch(self, number: int, edge: int) -> None:
        emit.mark(EPOCH, edge, "train", number)

    def step_begin(self, kind: str, number: int) -> None:
        """`kind`: train, evaluate, predict. Only training has steps; evaluation has batches, as in Keras."""
        self.step_end()
        self._step_open, self._number = kind, number
        emit.mark(_mark_of(kind), BEGIN, kind, number)

    def step_end(self) -> None:
        if self._step_open:
            emit.mark(_mark_of(self._step_open), END, self._step_open, self._number)
            self._step_open = ""


def name_model(model: object) -> None:
    """Reports the names of a model's layers right away rather than at its first call."""
    if torch_frames.library() is not None:
        from .._hooks import torch_names
        if torch_names._torch is not None:
            emit.quietly(lambda: torch_names.name_model(model))


__all__ = ["BEGIN", "END", "Loop", "name_model"]
