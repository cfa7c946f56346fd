"""The largest batch of a model in this process: two short recordings at small batches, a forecast, and one recorded step to confirm it."""
from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional

from . import _units
from .attach import record
from .fitting import fit
from .trace import open as open_trace

_STEPS = 2
_SHARE_FOR_CHANCE = 0.005       # by which the confirming step may exceed its forecast


@dataclass(frozen=True)
class LargestBatch:
    batch: int                      # 0: not even one sample fits
    sentence: str                   # for people
    available: int                  # bytes for the framework's pool
    forecast: Optional[int]         # bytes live at the peak with that batch
    measured: Optional[int]         # the same, as recorded by the confirming step; None without one
    answer: Dict[str, Any]          # what `vramscope.fit` returned

    @property
    def confirmed(self) -> bool:
        return self.measured is not None and self.measured <= self.available

    def __int__(self) -> int:
        return self.batch


def find(train: Callable[[int], object], samples: int, on: Optional[str], limit: Optional[str], confirm: bool,
         outside: Callable[[], int] = lambda: 0) -> LargestBatch:
    """`train(n)` runs one training step with a batch of n samples.

    outside: bytes of the device that are not the pool's, once it is in use: recordings this short may have no sample of the card, which shows the context.
    """
    if (on is None) == (limit is None):
        raise ValueError("expected on=, a device such as '16GiB' or 'H100-80GB', or limit=, the size of the framework's pool")
    small = max(1, samples // 2)
    for batch in (small, 2 * small):
        train(batch)        # what is made once, such as graphs and the optimizer's state, does not belong to a step
    with tempfile.TemporaryDirectory(prefix="vramscope-") as folder:
        batches = [small, 2 * small]
        runs = [_recorded(train, batch, _STEPS, folder) for batch in batches]
        held = str(outside()) if on is not None else None
        answer = fit(*runs, on=on, limit=limit, outside=held, batches=batches)
        card, remark = answer["cards"][0], ""
        row, measured = _row_of(answer), _confirmed(train, card["largest"], folder) if confirm else None
        # Larger batches may take other kernels, which need more: then less memory decides.
        if row is not None and measured is not None and measured > row["live"] * (1 + _SHARE_FOR_CHANCE):
            less = card["memory"] - int(card["available"] * (1 - row["live"] / measured))
            remark = f"A step with batch {row['batch']:,} needed {_units.percent(measured / row['live'] - 1)} more than forecast, so a smaller one is chosen. "
            answer = fit(*runs, on=f"{less >> 20}MiB" if on is not None else None, limit=str(less) if on is None else None, outside=held, batches=batches)
            row, measured = _row_of(answer), _confirmed(train, answer["cards"][0]["largest"], folder)
    batch = answer["cards"][0]["largest"]
    sentence = remark + answer["sentence"]
    if measured is not None and row is not None:
        off = measured / row["live"] - 1
        sentence += (f" A step with it needed {_units.percent(abs(off))} {'more' if off > 0 else 'less'}." if abs(off) > _SHARE_FOR_CHANCE
                     else " A recorded step confirmed this.")
    return LargestBatch(batch, sentence, card["available"], row["live"] if row else None, measured, answer)


def _row_of(answer: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """The forecast for the largest batch."""
    return next((row for row in answer["rows"] if row["batch"] == answer["cards"][0]["largest"]), None)


def _confirmed(train: Callable[[int], object], batch: int, folder: str) -> Optional[int]:
    """Bytes live at the peak of a step with this batch."""
    return open_trace(_recorded(train, batch, 1, folder)).whatif("--allocator", "recorded")["live"] if batch > 0 else None


def _recorded(train: Callable[[int], object], batch: int, steps: int, folder: str) -> str:
    with record(tempfile.mkdtemp(dir=folder)) as recording:
        for _ in range(steps):
            train(batch)
    return str(recording.path)


def resized(sample: Any, size: int, take: Callable[[Any, Any], Any]) -> Any:
    """The batch `sample`, repeated or cut to `size` samples, with its structure of dicts, lists and tuples."""
    if isinstance(sample, dict):
        return {key: resized(value, size, take) for key, value in sample.items()}
    if isinstance(sample, (list, tuple)):
        parts = [resized(value, size, take) for value in sample]
        return type(sample)(*parts) if hasattr(sample, "_fields") else type(sample)(parts)
    return take(sample, [i % len(sample) for i in range(size)])


def samples_in(sample: Any) -> int:
    while isinstance(sample, (dict, list, tuple)):
        if not sample:
            raise ValueError("sample_batch is empty: expected arrays whose first dimension is the batch")
        sample = next(iter(sample.values())) if isinstance(sample, dict) else sample[0]
    size = len(sample)
    if size == 0:
        raise ValueError("sample_batch is empty: expected arrays whose first dimension is the batch")
    return size
