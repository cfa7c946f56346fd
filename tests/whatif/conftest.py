"""Recordings that the tests of this folder share: each is made once."""
import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def record(vramscope, folder, command, environment):
    done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", "--", *map(str, command)], env={**os.environ, **environment}, capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    traces = sorted(folder.glob("*.vram"))
    assert len(traces) == 1, traces
    return traces[0], json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def record_tensorflow(vramscope, tmp_path_factory, newest_tensorflow):
    """record_tensorflow(model, batch, mode) -> trace, what TensorFlow counted"""
    made = {}

    def call(*arguments):
        if arguments not in made:
            made[arguments] = record(vramscope, tmp_path_factory.mktemp("tensorflow"), [newest_tensorflow, HERE / "tf_models.py", *arguments],
                                     # Without oneDNN, as on a GPU: with it, the peak of a graph differs by a third from run to run.
                                     {"TF_CPU_ALLOCATOR_USE_BFC": "1", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0"})
        return made[arguments]

    return call


@pytest.fixture(scope="session")
def record_torch(vramscope, tmp_path_factory, torch_python):
    """record_torch(model, batch, ...) -> trace"""
    made = {}

    def call(*arguments):
        if arguments not in made:
            made[arguments], _ = record(vramscope, tmp_path_factory.mktemp("torch"), [torch_python, HERE / "torch_models.py", *arguments], {"CUDA_VISIBLE_DEVICES": ""})
        return made[arguments]

    return call
