"""How many samples the batches of fit() have, according to Keras' own iterator over an epoch."""
from __future__ import annotations

import importlib
import threading
from typing import Any, Optional

from . import tf_pipeline, training
from .wrapping import wrap


class _Epochs(threading.local):
    """What the newest iterator says: batches in an epoch, samples in a batch and in the last one. 0: unknown."""
    batches = samples = last = 0


_epochs = _Epochs()


def install(root: str) -> None:
    try:
        module = importlib.import_module(f"{root}.src.trainers.epoch_iterator")
    except ImportError:                         # Keras 2
        return

    def made(token: None, ok: bool, result: None, iterator: Any, *_: Any, **__: Any) -> None:
        # The validation's iterator is made inside fit() too, before the end of the first epoch.
        if ok and not training.inside_loop():
            _remember(iterator.data_adapter, int(getattr(iterator, "steps_per_execution", 1) or 1))

    wrap(module.EpochIterator, "__init__", after=made)


def _remember(adapter: Any, per_execution: int) -> None:
    samples, last = adapter.batch_size, adapter.partial_batch_size if adapter.has_partial_batch else 0
    if not samples and hasattr(adapter, "_dataset"):
        samples = tf_pipeline.batch_size(adapter._dataset)
    _epochs.batches, _epochs.samples = int(adapter.num_batches or 0), int(samples or 0)
    _epochs.last = int(last or 0) if per_execution == 1 else 0


def batch_begins(batch: int, batches: Optional[int]) -> None:
    """`batch`: from 0; `batches`: how many the epoch has, if Keras knows."""
    if _epochs.samples:
        is_last = _epochs.last and batch + 1 == batches == _epochs.batches
        training.batch_seen(_epochs.last if is_last else _epochs.samples)
