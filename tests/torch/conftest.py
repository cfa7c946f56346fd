"""Recording a PyTorch program. TORCH=0 skips these tests, and says so."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def torch_python():
    """The interpreter with PyTorch. VRAMSCOPE_PYTHON_TORCH names another one."""
    if os.environ.get("TORCH") == "0":
        pytest.skip("TORCH=0: the tests with PyTorch are left out")
    python = Path(os.environ.get("VRAMSCOPE_PYTHON_TORCH", ROOT / ".venv-torch/bin/python"))
    if not python.exists():
        message = f"{python} with PyTorch is missing; `make test` makes it, TORCH=0 leaves these tests out"
        (pytest.fail if os.environ.get("VRAMSCOPE_REQUIRE_ALL") == "1" else pytest.skip)(message)
    return python


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

    def call(program, *arguments, options=(), env=None, timeout=300, code=0):
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


def pytest_configure():
    sys.path.insert(0, str(HERE))
