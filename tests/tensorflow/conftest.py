"""Recording a TensorFlow workload."""
import os

import pytest

from tensorflow_support import Recording


@pytest.fixture
def record(vramscope, run, tmp_path):
    """record([command...]) -> Recording."""

    def call(command, options=(), env=None, timeout=600):
        folder = tmp_path / "out"
        done = run([vramscope, "run", "-o", folder, "--quiet", *options, "--", *command], timeout=timeout,
                   env={**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", **(env or {})})
        return Recording(vramscope, folder, done.stdout)

    return call
