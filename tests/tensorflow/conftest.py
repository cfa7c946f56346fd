"""Recording a TensorFlow workload."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tensorflow_support import Recording  # noqa: E402


@pytest.fixture
def record(vramscope, run, tmp_path):
    """record([command...]) -> Recording."""

    def call(command, options=(), env=None, timeout=300):
        folder = tmp_path / "out"
        done = run([vramscope, "run", "-o", folder, "--quiet", *options, "--", *command], timeout=timeout,
                   env={**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", **(env or {})})
        return Recording(vramscope, folder, done.stdout)

    return call
