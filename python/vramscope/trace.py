"""`vramscope.open(path)`: a recorded run and its answers. The `vramscope` program does the analysis; this module only calls it.

    trace = vramscope.open("runs/today")
    trace.peak()["sentence"]
    pandas.DataFrame(trace.table("steps").columns)
    trace.arrow("blocks").to_pandas()
"""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Union

from . import _files
from ._arrow import Table

__all__ = ["Trace", "open"]


class Trace:
    """A trace file or a folder of them. Each method returns what `vramscope VERB --json` prints, with sizes in bytes."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(f"{self.path}: no such file or folder")
        self._program = _files.program()
        # A relative name such as "-n.vram" would be an option.
        self._operand = str(self.path) if not str(self.path).startswith("-") else os.path.join(os.curdir, str(self.path))

    def _run(self, verb: str, *arguments: str) -> str:
        done = subprocess.run([self._program, verb, self._operand, *arguments], capture_output=True, text=True)
        if done.returncode == 2 and done.stdout.strip():
            warnings.warn(done.stderr.strip(), stacklevel=3)    # a part of the trace cannot be read: the rest is an answer
        elif done.returncode not in (0, 1):         # 1: a check failed, which is an answer
            raise ValueError(done.stderr.strip() or f"vramscope {verb} exited with code {done.returncode}")
        return done.stdout

    def ask(self, verb: str, *arguments: str) -> Dict[str, Any]:
        """Runs any verb of the program with its own options: `ask("peak", "--by", "layer")`."""
        return json.loads(self._run(verb, "--json", *arguments))

    def summary(self, *arguments: str) -> Dict[str, Any]:
        return self.ask("summary", *arguments)

    def ledger(self, *arguments: str) -> Dict[str, Any]:
        return self.ask("ledger", *arguments)

    def peak(self, *arguments: str) -> Dict[str, Any]:
        return self.ask("peak", *arguments)

    def steps(self, *arguments: str) -> Dict[str, Any]:
        return self.ask("steps", *arguments)

    def layers(self, *arguments: str) -> Dict[str, Any]:
        return self.ask("layers", *arguments)

    def leaks(self, *arguments: str) -> Dict[str, Any]:
        return self.ask("leaks", *arguments)

    def fragmentation(self, *arguments: str) -> Dict[str, Any]:
        return self.ask("fragmentation", *arguments)

    def oom(self, *arguments: str) -> Dict[str, Any]:
        return self.ask("oom", *arguments)

    def whatif(self, *arguments: str) -> Dict[str, Any]:
        return self.ask("whatif", *arguments)

    def text(self, verb: str = "summary", *arguments: str) -> str:
        """The same answer as text."""
        return self._run(verb, *arguments)

    def events(self) -> Iterator[Dict[str, Any]]:
        """Every event, in order."""
        with tempfile.TemporaryFile("w+") as complaints:        # a pipe that nobody reads could fill up
            process = subprocess.Popen([self._program, "dump", "--jsonl", self._operand], stdout=subprocess.PIPE, stderr=complaints, text=True)
            assert process.stdout is not None
            any_event = False
            try:
                for line in process.stdout:
                    any_event = True
                    yield json.loads(line)
            finally:
                process.stdout.close()
                code = process.wait()
            if code != 0:
                complaints.seek(0)
                said = complaints.read().strip() or f"vramscope dump exited with code {code}"
                if not any_event:
                    raise ValueError(said)
                warnings.warn(said, stacklevel=2)               # a part of the trace cannot be read: the rest is an answer

    def table(self, name: str) -> Table:
        """Rows as an Arrow table: "events", or the longest list in a verb's answer ("steps", "layers", "peak", ...)."""
        if name == "events":
            return Table(list(self.events()))
        lists: List[List[Dict[str, Any]]] = []
        _find_lists(self.ask(name), lists)
        return Table(max(lists, key=len, default=[]))

    def arrow(self, table: str = "blocks") -> Any:
        """A table of docs/guide/formats.md as a pyarrow.Table, which must be installed; of a run folder, the rows of every process."""
        import pyarrow
        return pyarrow.concat_tables(pyarrow.ipc.open_file(each._export("arrow", "--table", table)).read_all() for each in self._processes())

    def _processes(self) -> List["Trace"]:
        """A trace for each process of the run."""
        files = sorted(self.path.glob("*.vram")) if self.path.is_dir() else [self.path]
        if not files:
            raise ValueError(f"{self.path}: no trace in this folder; record one with 'vramscope run'")
        return [Trace(file) for file in files]

    def _export(self, to: str, *options: str) -> bytes:
        done = subprocess.run([self._program, "export", self._operand, "--to", to, *options, "-o", "-"], capture_output=True)
        if done.returncode != 0:
            raise ValueError(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def __repr__(self) -> str:
        return f"<vramscope trace {self.path}>"

    def _repr_html_(self) -> str:
        from .notebook import answer_html
        return answer_html(self)


def _find_lists(value: Any, out: List[List[Dict[str, Any]]]) -> None:
    if isinstance(value, dict):
        for one in value.values():
            _find_lists(one, out)
    elif isinstance(value, list):
        if value and all(isinstance(one, dict) for one in value):
            out.append([{k: v for k, v in one.items() if not isinstance(v, (dict, list))} for one in value])
        for one in value:
            _find_lists(one, out)


def open(path: Union[str, "os.PathLike[str]"]) -> Trace:  # noqa: A001
    """A trace file, or the folder of a run."""
    return Trace(path)
