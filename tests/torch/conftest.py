"""Recording a PyTorch program. TORCH=0 skips these tests, and says so."""
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


class Recording:
    """A finished recording: what the program printed last (JSON), and its traces."""

    def __init__(self, vramscope, folder, done):
        self.vramscope, self.folder, self.stderr = vramscope, folder, done.stderr
        lines = done.stdout.strip().splitlines()
        self.said = json.loads(lines[-1]) if lines and lines[-1][:1] in "[{" else None
        self.traces = sorted(folder.glob("*.vram"))
        self._events = {}

    def events(self, trace=None):
        if trace is None:
            assert len(self.traces) == 1, f"one process allocates, so one trace: {self.traces}\n{self.stderr}"
            trace = self.traces[0]
        if trace not in self._events:
            text = subprocess.check_output([self.vramscope, "dump", "--jsonl", trace], text=True, errors="surrogateescape")
            self._events[trace] = [json.loads(line) for line in text.splitlines()]
        return self._events[trace]


@pytest.fixture(scope="session")
def record(vramscope, run, tmp_path_factory, torch_python):
    """record(program, *arguments) -> Recording. `program` is a case of workload.py, or a path. Starting PyTorch takes seconds, so
    what was recorded once is kept."""
    kept = {}

    def call(program, *arguments, options=(), env=None, timeout=600, code=0):
        key = (str(program), arguments, tuple(options), tuple(sorted((env or {}).items())))
        if key not in kept:
            kept[key] = fresh(program, arguments, options, env, timeout, code)
        return kept[key]

    def fresh(program, arguments, options, env, timeout, code):
        folder = tmp_path_factory.mktemp("recording") / "out"
        command = [HERE / "workload.py", program] if isinstance(program, str) else [program]
        done = run([vramscope, "run", "-o", folder, "--quiet", *options, "--", torch_python, *command, *arguments], timeout=timeout,
                   code=code, env={**os.environ, **(env or {})})
        return Recording(vramscope, folder, done)

    return call
