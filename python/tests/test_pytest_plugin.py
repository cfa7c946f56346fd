"""The pytest plugin in a pytest of its own, with real TensorFlow: peaks are those of TensorFlow's own counters."""
import os
import re
import subprocess

import pytest

SUITE = """
import gc
import pytest
import tensorflow as tf

MIB = 1 << 20
KEPT = []

def counters():
    return tf.config.experimental.get_memory_info("CPU:0")

def allocate(mib):
    return tf.zeros((mib * MIB // 4,)) + 1

def test_warm_up():
    allocate(1)

@pytest.mark.vram_limit("64 MiB")
def test_below_the_limit():
    allocate(8)

@pytest.mark.vram_limit("4 MiB")
def test_above_the_limit():
    allocate(8)

@pytest.mark.vram_limit("a lot")
def test_wrong_limit():
    pass

def test_the_fixture(vram):
    before = counters()["current"]
    kept = allocate(8)
    now = counters()
    assert vram.peak == now["peak"] - before
    assert vram.growth == now["current"] - before
    assert vram.on("CPU:0").peak == vram.peak
    with pytest.raises(ValueError):
        vram.on("GPU:7")

@pytest.fixture
def batch():
    return allocate(6)

@pytest.fixture
def batch_with_teardown():
    yield allocate(7)

def test_of_fixtures(batch, batch_with_teardown):
    assert counters()["current"] >= 13 * MIB

def test_that_leaks():
    KEPT.append(allocate(3))
"""


@pytest.fixture(scope="module")
def outcome(python, root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(SUITE)
    environment = {**os.environ, "PYTHONPATH": str(root / "python"), "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run([python, "-m", "pytest", "-p", "vramscope.pytest_plugin", "-p", "no:cacheprovider", "--vram", "-q", "-rA", folder],
                          capture_output=True, text=True, cwd=folder, env=environment).stdout


def test_limits(outcome):
    assert "PASSED test_suite.py::test_below_the_limit" in outcome, outcome
    assert re.search(r"memory peak of \d+\.\d MiB on CPU:0; the limit is 4\.0 MiB", outcome), outcome
    assert "FAILED test_suite.py::test_above_the_limit" in outcome
    assert "expected bytes, or a size such as '2 GiB'" in outcome


def test_the_fixture_agrees_with_tensorflow(outcome):
    assert "PASSED test_suite.py::test_the_fixture" in outcome, outcome


def test_leaks_are_shown(outcome):
    line = next(line for line in outcome.splitlines() if line.endswith("test_suite.py::test_that_leaks") and "CPU:0" in line)
    assert re.search(r"3\.0 MiB  CPU:0", line), outcome


def test_what_a_fixture_returns_is_not_left_behind(outcome):
    assert "PASSED test_suite.py::test_of_fixtures" in outcome, outcome
    line = next(line for line in outcome.splitlines() if line.endswith("test_suite.py::test_of_fixtures") and "CPU:0" in line)
    assert re.search(r" -  CPU:0", line), outcome
