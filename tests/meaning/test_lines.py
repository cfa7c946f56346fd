"""The user's own line, wherever frameworks and the user's own packages are installed."""
import json
import os
import subprocess

import pytest

TORCH = """
import torch
from mine.model import Net
net = Net()
kept = net(torch.ones(512, 512))    # the line in train.py
"""
TORCH_MODEL = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.relu(x) + torch.ones(1024, 512).sum()
"""
TENSORFLOW = """
import tensorflow as tf
weight = tf.Variable(tf.ones([512, 512]))
@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.relu(weight @ weight))
    weight.assign_sub(0.1 * tape.gradient(loss, weight))
for _ in range(6):
    step()
"""


@pytest.fixture
def recorded(vramscope, tmp_path):
    """recorded(python, program, options, folder of the framework) -> {line: bytes at the peak}. The interpreter is the one below the environment,
    which knows the framework only by PYTHONPATH."""

    def record(python, program, *options, libraries, more=""):
        base = subprocess.check_output([python, "-c", "import sys; print(sys._base_executable)"], text=True).strip()
        (tmp_path / "train.py").write_text(program)
        out = tmp_path / "out"
        done = subprocess.run([vramscope, "run", *options, "-o", out, "--quiet", "--", base, tmp_path / "train.py"], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(libraries), more])), "TF_CPU_ALLOCATOR_USE_BFC": "1",
                                   "TF_CPP_MIN_LOG_LEVEL": "3"})
        assert done.returncode == 0, done.stderr
        trace, = out.glob("*.vram")
        answer = json.loads(subprocess.check_output([vramscope, "peak", "--by", "line", "-n", "0", "--json", trace]))
        return {group["keys"][0]: group["bytes"] for group in answer["groups"] if group["bytes"] >= 1 << 20}

    return record


def packages_of(python):
    return subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], text=True).strip()


def test_tensorflow_outside_site_packages(recorded, newest_tensorflow, tmp_path):
    (tmp_path / "libs").symlink_to(packages_of(newest_tensorflow))
    lines = recorded(newest_tensorflow, TENSORFLOW, libraries=tmp_path / "libs")
    assert lines and all(line.startswith("train.py:") for line in lines), lines


@pytest.mark.parametrize("own", [False, True])
def test_a_package_of_the_users_where_packages_are_installed(own, recorded, torch_python, tmp_path):
    (tmp_path / "libs").symlink_to(packages_of(torch_python))
    mine = tmp_path / "site-packages" / "mine"
    mine.mkdir(parents=True)
    (mine / "model.py").write_text(TORCH_MODEL)
    options = ["--source-root", mine] if own else []
    lines = recorded(torch_python, TORCH, *options, libraries=tmp_path / "libs", more=str(tmp_path / "site-packages"))
    # The batch is made in train.py, what Net computes in model.py.
    assert set(lines) == ({"train.py:5", "model.py:5"} if own else {"train.py:5"}), lines


def test_a_source_root_that_does_not_exist_is_refused(vramscope, tmp_path):
    done = subprocess.run([vramscope, "run", "--source-root", tmp_path / "missing", "--", "true"], capture_output=True, text=True)
    assert done.returncode == 2 and "--source-root" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
