"""Recording that begins in a running interpreter: `start()`, `stop()`, `with record(...)`.

The collector is a process of its own, in its own session, so that interrupting a notebook's kernel does not reach it. It is the ordinary
`vramscope run`, around a command that only waits: that command tells us the spool folder, and ends when the pipe to it closes, be it by
`stop()` or because this process died.
"""
from __future__ import annotations

import atexit
import ctypes
import numbers
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import List, Optional, Type, Union

from . import _files, _memory, _recorder
from ._hooks import emit, importing, training

_WAIT_AND_TELL = 'printf "%s\\n%s\\n%s\\n" "$VRAMSCOPE_SPOOL" "$VRAMSCOPE_SPOOL_LIMIT" "$VRAMSCOPE_OPTIONS"; exec cat >/dev/null'
_GRACE_S = 30
_MOST_HZ = 1000


class _Collector:
    """The process that drains the spool and writes the trace."""

    def __init__(self, output: Path, stacks: str, sample_hz: float) -> None:
        self.output = output
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VRAMSCOPE_") and name != "LD_PRELOAD"}
        self._process = subprocess.Popen(
            [_files.program(), "run", "--quiet", "--no-python", "--stacks", stacks, "--sample-hz", f"{float(sample_hz):g}", "-o", str(output), "--",
             "/bin/sh", "-c", _WAIT_AND_TELL],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True)
        assert self._process.stdout is not None
        told = [self._process.stdout.readline().decode().rstrip("\n") for _ in range(3)]
        self.spool, self.limit, self.options = told
        if not self.spool:
            raise RuntimeError(f"the collector did not start: {self.end()}")

    def disown(self) -> None:
        """In a child made by fork: its copy of the pipe must not keep the collector waiting when ours is closed."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._process.returncode = 0        # not the child's to wait for

    def end(self) -> str:
        """Lets it finish the trace; what it had to say."""
        try:
            _, complaints = self._process.communicate(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            return f"the collector is still writing to {self.output}"
        return complaints.decode(errors="replace").strip()


_collector: Optional[_Collector] = None
_files_before: List[Path] = []


def start(output: Union[str, "os.PathLike[str]"] = "vramscope-runs/notebook", stacks: str = "python", sample_hz: float = 10) -> None:
    """Records this process from here on, into the folder `output`.

    What was allocated before is counted as "before recording". Memory that does not go through a framework's allocator is not seen (the
    driver level needs `vramscope run`). RuntimeError if recording is on already or cannot begin; then nothing is half-started.
    """
    global _collector, _files_before
    _check_arguments(output, stacks, sample_hz)
    if _collector is not None:
        raise RuntimeError(f"recording is already on, into {_collector.output}; stop() it first")
    recorder = _recorder.load()
    if recorder.recording():  # type: ignore[attr-defined]
        raise RuntimeError("recording is already on: this process was started by `vramscope run`, or forked from one that records")
    folder = Path(output).resolve()
    _files_before = sorted(folder.glob("*.vram")) if folder.is_dir() else []
    collector = _Collector(folder, stacks, sample_hz)
    why = ctypes.create_string_buffer(512)
    if recorder.attach(collector.spool.encode(), int(collector.limit), collector.options.encode(), why, len(why)):  # type: ignore[attr-defined]
        collector.end()
        raise RuntimeError(f"recording did not begin: {why.value.decode(errors='replace')}")
    _collector = collector
    _memory.forget_readers()
    importing.watch()
    adopt_what_exists()


def _check_arguments(output: object, stacks: object, sample_hz: object) -> None:
    if not isinstance(output, (str, os.PathLike)):
        raise TypeError(f"output={output!r}: the name of a folder")
    if not os.fspath(output) or "\0" in str(os.fspath(output)):
        raise ValueError(f"output={output!r}: the name of a folder")
    if stacks not in ("python", "native", "both", "none"):
        raise ValueError(f"stacks={stacks!r}: python, native, both or none")
    if not isinstance(sample_hz, numbers.Real) or isinstance(sample_hz, bool):
        raise TypeError(f"sample_hz={sample_hz!r}: samples a second, a number from 0 to {_MOST_HZ}")
    if not 0 <= sample_hz <= _MOST_HZ:
        raise ValueError(f"sample_hz={sample_hz!r}: samples a second, a number from 0 to {_MOST_HZ}")


def adopt_what_exists() -> None:
    """Models, optimizers and variables that were made before the hooks were there."""
    if "tensorflow" in sys.modules:
        from ._hooks import adopt
        emit.quietly(adopt.all)
        training.tag_variables()


def stop() -> Path:
    """Ends the recording that `start` began; returns the trace. RuntimeError if there is none."""
    global _collector
    if _collector is None:
        raise RuntimeError("recording is not on; start() it first")
    collector, _collector = _collector, None
    training.tag_variables()
    recorder = _recorder.load()
    recorder.detach()  # type: ignore[attr-defined]
    emit.forget()
    _memory.forget_readers()
    complaints = collector.end()
    new = [path for path in sorted(collector.output.glob("*.vram")) if path not in _files_before]
    if not new:
        raise RuntimeError(f"no trace was written to {collector.output}: {complaints or _nothing_allocated()}")
    own = [path for path in new if f"-{os.getpid()}-" in path.name]     # the others are of processes forked meanwhile
    return (own or new)[-1]


def _nothing_allocated() -> str:
    why = "nothing was allocated while recording"
    if "tensorflow" in sys.modules and not os.environ.get(_memory.HOST_POOL_VARIABLE):
        why += f"; TensorFlow without a GPU is recorded with {_memory.HOST_POOL_VARIABLE}=1, set before it is imported"
    return why


def _leave_to_parent() -> None:
    global _collector
    if _collector is not None:
        collector, _collector = _collector, None
        emit.quietly(collector.disown)


os.register_at_fork(after_in_child=_leave_to_parent)


def _stop_at_exit() -> None:
    if _collector is not None:
        emit.quietly(stop)


atexit.register(_stop_at_exit)


class record:
    """`with vramscope.record("out") as recording:` records the block; afterwards `recording.path` is the trace."""

    def __init__(self, output: Union[str, "os.PathLike[str]"] = "vramscope-runs/notebook", stacks: str = "python", sample_hz: float = 10) -> None:
        _check_arguments(output, stacks, sample_hz)
        self._arguments = (output, stacks, sample_hz)
        self.path: Optional[Path] = None

    def __enter__(self) -> "record":
        start(*self._arguments)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        try:
            self.path = stop()
        except RuntimeError:
            if error is None:       # the block's own error is the one to see
                raise
