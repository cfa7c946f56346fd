"""Starts recording in a running interpreter: `start()`, `stop()`, `with record(...)`.

The collector is a separate process in its own session, so that interrupting a notebook's kernel does not reach it. It is an ordinary
`vramscope run` with a command that only waits: that command prints the spool folder and exits when its input closes, either through
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
from ._hooks import adopt, emit, importing, training

_PRINT_AND_WAIT = 'printf "%s\\n%s\\n%s\\n" "$VRAMSCOPE_SPOOL" "$VRAMSCOPE_SPOOL_LIMIT" "$VRAMSCOPE_OPTIONS"; exec cat >/dev/null'
_GRACE_S = 300        # only for a collector that hangs: on a busy machine it may take a while to finish a trace
_MOST_HZ = 1000
_STACKS = ("python", "native", "both", "none")


class _Collector:
    """The process that drains the spool and writes the trace."""

    def __init__(self, output: Path, stacks: str, sample_hz: float) -> None:
        self.output = output
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VRAMSCOPE_") and name != "LD_PRELOAD"}
        self._process = subprocess.Popen(
            [_files.program(), "run", "--quiet", "--no-python", "--stacks", stacks, "--sample-hz", f"{float(sample_hz):g}", "-o", str(output), "--",
             "/bin/sh", "-c", _PRINT_AND_WAIT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True)
        assert self._process.stdout is not None
        self.spool, self.limit, self.options = [self._process.stdout.readline().decode().rstrip("\n") for _ in range(3)]
        if not self.spool:
            raise RuntimeError(f"the collector did not start: {self.end()}")

    def disown(self) -> None:
        """Called in a forked child: its copy of the pipe must not keep the collector waiting when the parent closes its own."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._process.returncode = 0        # the child must not wait for it

    def end(self) -> str:
        """Lets it finish the trace; returns its messages."""
        try:
            _, complaints = self._process.communicate(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            return f"the collector is still writing to {self.output}"
        return complaints.decode(errors="replace").strip()


_collector: Optional[_Collector] = None
_files_before: List[Path] = []


def start(output: Union[str, "os.PathLike[str]"] = "vramscope-runs/notebook", stacks: str = "python", sample_hz: float = 10) -> None:
    """Starts recording this process into the folder `output`.

    Memory allocated earlier is counted as "before recording". Memory that does not go through a framework's allocator is not recorded (the
    driver level requires `vramscope run`). Raises RuntimeError if recording is already on or cannot start; nothing is left half-started.
    """
    global _collector, _files_before
    _check_arguments(output, stacks, sample_hz)
    if _collector is not None:
        raise RuntimeError(f"already recording into {_collector.output}; call stop() first")
    recorder = _recorder.load()
    if recorder.recording():  # type: ignore[attr-defined]
        raise RuntimeError("already recording: this process was started by 'vramscope run', or forked from a recorded process")
    folder = Path(output).resolve()
    _files_before = sorted(folder.glob("*.vram")) if folder.is_dir() else []
    collector = _Collector(folder, stacks, sample_hz)
    why = ctypes.create_string_buffer(512)
    if recorder.attach(collector.spool.encode(), int(collector.limit), collector.options.encode(), why, len(why)):  # type: ignore[attr-defined]
        collector.end()
        raise RuntimeError(f"cannot start recording: {why.value.decode(errors='replace')}")
    _collector = collector
    _memory.forget_readers()
    importing.watch()
    adopt.what_exists()


def _check_arguments(output: object, stacks: object, sample_hz: object) -> None:
    wrong_output = f"output={output!r}: expected the name of a folder"
    if not isinstance(output, (str, os.PathLike)):
        raise TypeError(wrong_output)
    if not os.fspath(output) or "\0" in str(os.fspath(output)):
        raise ValueError(wrong_output)
    if stacks not in _STACKS:
        raise ValueError(f"stacks={stacks!r}: expected one of {', '.join(_STACKS)}")
    wrong_rate = f"sample_hz={sample_hz!r}: expected samples per second, from 0 to {_MOST_HZ}"
    if not isinstance(sample_hz, numbers.Real) or isinstance(sample_hz, bool):
        raise TypeError(wrong_rate)
    if not 0 <= sample_hz <= _MOST_HZ:
        raise ValueError(wrong_rate)


def stop() -> Path:
    """Ends the recording and returns the path of its trace. Raises RuntimeError if nothing was recorded."""
    global _collector
    if _collector is None:
        raise RuntimeError("not recording; call start() first")
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
    own = [path for path in new if f"-{os.getpid()}-" in path.name]     # the others belong to processes that were forked meanwhile
    return (own or new)[-1]


def _nothing_allocated() -> str:
    why = "nothing was allocated while recording"
    for framework in importing.FRAMEWORKS:
        variable = framework.get("HOST_POOL_VARIABLE")
        if variable and not os.environ.get(variable) and framework["MODULE"] in sys.modules:
            why += f"; to record {framework['NAME']} without a GPU, set {variable}=1 before importing it"
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
            if error is None:       # do not hide an error of the block itself
                raise
