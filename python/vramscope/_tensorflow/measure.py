"""Ways of training side by side, each in a process of its own: what one leaves behind cannot count for the next."""
from __future__ import annotations

import contextlib
import multiprocessing
import operator
import os
import pickle
import statistics
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional

from .._comparison import Comparison
from .._hooks import importing
from .._memory import memory_info, reset_peak

Variant = Callable[[int, Callable[..., None]], object]
_FEWEST_STEPS = 4


class Measured(NamedTuple):
    peak: Optional[int] = None
    steady: Optional[int] = None                # highest of the second half of the steps
    seconds: Optional[float] = None             # median of the second half of the steps
    samples_per_s: Optional[float] = None       # of the same steps
    failed: str = ""


class _Steps:
    """Peak and time of each step. Between two steps it waits for the device: a kernel that was only queued is not done yet."""

    def __init__(self, device: str) -> None:
        import tensorflow as tf
        self._device, self._wait = device, tf.test.experimental.sync_devices
        self._peaks: List[int] = []
        self._ends: List[float] = []
        self._samples: List[Optional[int]] = []

    def done(self, samples: Optional[int] = None) -> None:
        """samples: how many the step trained on, if the program says."""
        self._wait()
        self._samples.append(None if samples is None else operator.index(samples))
        self._ends.append(time.perf_counter())
        self._peaks.append(memory_info(self._device).peak)
        reset_peak(self._device)

    def answer(self) -> Measured:
        if len(self._ends) < _FEWEST_STEPS:
            return Measured(failed=f"called step_done() {len(self._ends)} times: call it after each step")
        half = len(self._ends) // 2
        times = [end - begin for begin, end in zip(self._ends, self._ends[1:])]
        samples = [count for count in self._samples[half:] if count is not None]
        per_s = sum(samples) / sum(times[half - 1:]) if len(samples) == len(times[half - 1:]) else None
        return Measured(max(self._peaks), max(self._peaks[half:]), statistics.median(times[half - 1:]), per_s)


def measure(train: Variant, steps: int) -> Measured:
    """In this process."""
    from ..tf import default_device
    memory = _Steps(default_device())
    train(steps, memory.done)
    return memory.answer()


def _in_child(answer: Any, train: Variant, steps: int) -> None:
    try:
        measured = measure(train, steps)
    except Exception as error:  # noqa: BLE001 (whatever it is: an answer about this variant, such as out of memory)
        measured = Measured(failed=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
    answer.send(measured)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """A child that takes only what it needs of a GPU, and counts on a CPU as on a GPU."""
    before = dict(os.environ)
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    for framework in importing.FRAMEWORKS:
        if "HOST_POOL_VARIABLE" in framework:
            os.environ.setdefault(framework["HOST_POOL_VARIABLE"], "1")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _in_fresh_process(name: str, train: Variant, steps: int) -> Measured:
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_in_child, args=(sender, train, steps), name=f"vramscope-{name}")
    try:
        with _environment():
            process.start()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f'compare(): "{name}" cannot be sent to a fresh process ({error}); define its functions at the top level of a module') from None
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        code = process.exitcode or 0
        if code < 0:
            return Measured(failed=f"killed by signal {-code}")
        raise RuntimeError(f'compare(): "{name}" ended with code {code} before it was measured (its own message is above); in a script, call '
                           """compare() below 'if __name__ == "__main__":'""") from None
    finally:
        process.join()
        receiver.close()


def compare(variants: Mapping[str, Variant], steps: int) -> Comparison:
    if not hasattr(variants, "items") or not variants or not all(callable(one) for one in variants.values()):
        raise TypeError('compare(): expected names and functions train(steps, step_done), as in compare({"eager": train_eagerly, ...})')
    if operator.index(steps) < _FEWEST_STEPS:
        raise ValueError(f"steps={steps!r}: expected at least {_FEWEST_STEPS}, because the first half is warm-up")
    measured = {name: _in_fresh_process(name, train, steps) for name, train in variants.items()}
    peaks: Dict[str, Dict[str, Optional[int]]] = {name: {"peak": one.peak, "steady": one.steady} for name, one in measured.items()}
    notes = [f"Each in a fresh process, {steps} steps; steady, time per step and samples per second are those of the second half."]
    notes += [f"{name} failed: {one.failed}" for name, one in measured.items() if one.failed]
    speeds = {name: one.samples_per_s for name, one in measured.items()}
    return Comparison("variant", peaks, notes, {name: one.seconds for name, one in measured.items()},
                      speeds if any(speed is not None for speed in speeds.values()) else None)
