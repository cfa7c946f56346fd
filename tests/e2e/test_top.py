"""`vramscope top`: what the devices report, and what only a recorded process knows."""
import json
import os
import subprocess
import urllib.request

import pytest

from terminal import Terminal


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
    assert "No device figures" in done.stdout or "No GPU found" in done.stdout


def devices_of(fakegpu, tmp_path):
    return {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state"), "FAKEGPU_DEVICES": "2"}


@pytest.fixture
def busy_devices(vramscope, fakegpu, tmp_path):
    """Two processes on a card, one of them recorded; their environment."""
    env, held = devices_of(fakegpu, tmp_path), []
    try:
        for prefix, mib in (([], "3000"), ([vramscope, "run", "-q", "-o", tmp_path / "out", "--"], "500")):
            held.append(subprocess.Popen([*prefix, fakegpu / "cuda_program", "dlsym", "hold", mib], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, env=env))
            assert held[-1].stdout.readline() == b"holding\n"
        yield env
    finally:
        for process in held:
            process.communicate(b"")


def test_keys_and_sizes_of_a_terminal(vramscope, busy_devices):
    with Terminal([vramscope, "top"], env=busy_devices) as terminal:
        row = lambda text: next(line for line in terminal.lines() if text in line)
        place = lambda text: terminal.lines().index(row(text))  # other people's processes may stand between ours
        terminal.until(lambda: terminal.shows("hold 500") and terminal.shows("hold 3000") and " CUDA " in row("hold 500"))
        assert "GPU 0" in terminal.text() and "GPU 1" in terminal.text()
        terminal.until(lambda: terminal.shows("The run needs 500.0 MiB on GPU 0."))
        assert "500.0" in row("hold 500") and "not recorded" in row("hold 3000")
        assert place("hold 3000") < place("hold 500"), "the largest on the device first"
        assert any(0x2800 < ord(c) < 0x2900 for c in row("hold 500")), "a curve in braille"
        terminal.press("s")
        terminal.until(lambda: terminal.shows("sorted by live") and place("hold 500") < place("hold 3000"))
        for key in "/Hold 3":
            terminal.press(key)
        terminal.until(lambda: terminal.shows("filter: Hold 3") and not terminal.shows("hold 500"))
        terminal.press("\r")
        terminal.until(lambda: terminal.shows("select") and not terminal.shows("hold 500"))
        terminal.press("\x1b")
        terminal.until(lambda: terminal.shows("hold 500"))
        terminal.press("?")
        terminal.until(lambda: terminal.shows("No key affects"))
        terminal.press("?")
        terminal.until(lambda: not terminal.shows("No key affects"))
        for columns, rows in ((80, 24), (40, 10), (160, 50)):
            terminal.resize(columns, rows)
            terminal.until(lambda: terminal.shows("vramscope top") and terminal.shows("GPU 0") and "select" in terminal.lines()[-1])
        terminal.press(" ")
        terminal.until(lambda: terminal.shows("paused"))
        terminal.be_quiet()
        sent = terminal.received
        terminal.settle(2)
        assert terminal.received == sent, "only what changed is sent: nothing while it stands still"
        terminal.press("q")
        assert terminal.exit_code() == 0
        assert terminal.raw.endswith(b"\x1b[?25h\x1b[?1049l"), "cursor and screen are given back"


def test_keys_that_open_the_selected_process(vramscope, busy_devices):
    with Terminal([vramscope, "top"], env=busy_devices) as terminal:
        terminal.until(lambda: terminal.shows("hold 500") and terminal.shows("hold 3000"))
        for key in "/hold 500\r":
            terminal.press(key)

        def opened(key, words):
            terminal.press(key)
            terminal.until(lambda: terminal.shows("scroll") or terminal.shows("Nothing has been written yet"))
            if not terminal.shows("scroll"):
                return False
            terminal.until(lambda: words in terminal.text())
            terminal.press("\x1b")
            terminal.until(lambda: terminal.shows("select"))
            return True

        terminal.until(lambda: opened("p", "at the peak"))
        assert opened("l", "Cannot tell whether it leaks")
        assert opened("\r", "500.0 MiB")
        terminal.press("w")
        terminal.until(lambda: terminal.shows("http://127.0.0.1:"))
        address = next(word for line in terminal.lines() for word in line.split() if word.startswith("http://"))
        with urllib.request.urlopen(address, timeout=600) as page:
            assert page.status == 200 and b"vramscope" in page.read()
        terminal.press("\x1b")
        terminal.until(lambda: terminal.shows("select"))
        terminal.press("\x1b")
        for key in "/hold 3000\r":
            terminal.press(key)
        terminal.until(lambda: terminal.shows("hold 3000") and not terminal.shows("hold 500"))
        terminal.press("p")
        terminal.until(lambda: terminal.shows("Not recorded: start it"))
        terminal.press("q")
        assert terminal.exit_code() == 0
        with pytest.raises(OSError):
            urllib.request.urlopen(address, timeout=600)


def test_interrupted_it_gives_the_screen_back(vramscope):
    with Terminal([vramscope, "top"], env={**os.environ, "VRAMSCOPE_NVML": "/nonexistent.so"}) as terminal:
        terminal.until(lambda: terminal.shows("No device figures") or terminal.shows("No GPU found"))
        terminal.press("\x03")
        assert terminal.exit_code() == 0
        assert terminal.raw.endswith(b"\x1b[?25h\x1b[?1049l")


def test_needs_a_terminal_unless_once(run, vramscope):
    done = run([vramscope, "top"], code=2)
    assert done.stderr.count("\n") == 1 and "--once" in done.stderr
    assert "--once" in run([vramscope, "top", "--json"], code=2).stderr


PROGRAM = """
import os, sys
os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
kept = tf.zeros([16 * 1024 * 1024 + 64 * 1024])  # 64.25 MiB: a half is rounded up everywhere
print(tf.config.experimental.get_memory_info("CPU:0")["current"], flush=True)
sys.stdin.read()
"""


def mib(number):
    tenths = (number * 10 + (1 << 19)) >> 20
    return f"{tenths // 10:,}.{tenths % 10}"


def test_a_recorded_process_shows_what_its_framework_counts(run, vramscope, newest_tensorflow, tmp_path, wait_until):
    child = subprocess.Popen([vramscope, "run", "-q", "-o", tmp_path / "out", "--", newest_tensorflow, "-c", PROGRAM],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        counted = int(child.stdout.readline())

        def shown():
            processes = json.loads(top(run, vramscope, "--json").stdout)["processes"]
            return [p for p in processes if p["recorded"] and p["live_bytes"] == counted]

        mine = wait_until(shown, f"a recorded process with {counted} live bytes")
        assert mine[0]["peak_bytes"] >= counted and mine[0]["framework"] == "TensorFlow"
        assert mine[0]["step"] is None and mine[0]["phase"] is None, "a program without a training loop has neither"
        with Terminal([vramscope, "top"]) as terminal:
            row = lambda: next((line.split() for line in terminal.lines() if line.split()[:1] == [str(mine[0]["pid"])] and "TensorFlow" in line), [])
            terminal.until(lambda: mib(counted) in row() and mib(mine[0]["peak_bytes"]) in row())
            terminal.press("q")
            assert terminal.exit_code() == 0
    finally:
        child.communicate("", timeout=600)
    # The trace of the same process says the same, in the same characters.
    peak = [vramscope, "peak", tmp_path / "out", "--phase", "all"]
    assert json.loads(run([*peak, "--json"]).stdout)["total"] == mine[0]["peak_bytes"]
    assert run(peak).stdout.startswith(f"{mib(mine[0]['peak_bytes'])} MiB")
