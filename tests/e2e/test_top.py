"""`vramscope top`: what the devices say, and what only a recorded process can tell."""
import json
import os
import subprocess
import time

import pytest


@pytest.fixture
def fakegpu(build):
    folder = build / "tests/fakegpu"
    if not (folder / "libcuda.so.1").exists():
        pytest.skip("the fake driver is not built")
    return folder


def top(run, vramscope, *options, **environment):
    return run([vramscope, "top", "--once", *options], env={**os.environ, **environment})


def test_devices_without_any_recorded_process(run, vramscope, fakegpu, tmp_path):
    done = top(run, vramscope, "--json", LD_LIBRARY_PATH=str(fakegpu), FAKEGPU_STATE=str(tmp_path / "state"))
    state = json.loads(done.stdout)
    assert len(state["gpus"]) >= 1
    assert all(gpu["total_bytes"] > 0 for gpu in state["gpus"])
    text = top(run, vramscope, LD_LIBRARY_PATH=str(fakegpu), FAKEGPU_STATE=str(tmp_path / "state")).stdout
    assert text.startswith(" vramscope top") and "GPU 0" in text and "\x1b" not in text


def test_a_machine_without_devices_is_no_error(run, vramscope):
    done = top(run, vramscope, VRAMSCOPE_NVML="/nonexistent.so")
    assert "No device figures" in done.stdout or "No GPU here" in done.stdout


def test_needs_a_terminal_unless_once(run, vramscope):
    done = run([vramscope, "top"], code=2)
    assert done.stderr.count("\n") == 1 and "--once" in done.stderr
    assert "--once" in run([vramscope, "top", "--json"], code=2).stderr


PROGRAM = """
import os, time
os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
kept = tf.zeros([16, 1024, 1024])
print(tf.config.experimental.get_memory_info("CPU:0")["current"], flush=True)
time.sleep(60)
"""


def test_a_recorded_process_shows_what_its_framework_counts(run, vramscope, tensorflow, tmp_path):
    version, python = tensorflow
    if version != "2.21":
        pytest.skip("one version is enough: totals are tested elsewhere")
    child = subprocess.Popen([vramscope, "run", "-q", "-o", tmp_path / "out", "--", python, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    try:
        counted = int(child.stdout.readline())
        deadline = time.monotonic() + 20
        while True:
            state = json.loads(top(run, vramscope, "--json").stdout)
            mine = [p for p in state["processes"] if p["recorded"] and p["live_bytes"] == counted]
            if mine or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        assert mine, (counted, state["processes"])
        assert mine[0]["peak_bytes"] >= counted and mine[0]["framework"] == "TensorFlow"
    finally:
        child.terminate()
        child.wait(timeout=30)
