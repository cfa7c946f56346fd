"""On a real GPU: replays of PyTorch's allocator make the same device calls, hand out the same addresses, and flush and fail as often as PyTorch did."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorflow_support import Recording

HERE = Path(__file__).resolve().parent

pytestmark = pytest.mark.gpu
PYTHON = os.environ.get("PYTHON_GPU_TORCH", os.environ.get("PYTHON_GPU", sys.executable))
MARK = 777
TAKES = {"segment_alloc": "take", "segment_map": "take", "segment_free": "return", "segment_unmap": "return"}
# Settings, and the programs that run under them in one process. "limit" is not a setting: the process may use 1 GiB.
CASES = {
    # The libraries' workspaces of a model stay, so it comes last.
    "": ["churn", "churn", "steps", "steps", "empties", "streams", "model"],
    "expandable_segments:True": ["churn", "churn", "steps", "steps", "empties", "streams", "model"],
    "max_split_size_mb:32": ["churn", "steps", "empties"],
    "max_split_size_mb:64,max_non_split_rounding_mb:32": ["churn", "steps"],
    "roundup_power2_divisions:4": ["churn", "steps", "empties"],
    "roundup_power2_divisions:[4:8,16:4,>:2]": ["churn", "steps"],
    "limit": ["tight", "tight", "steps"],
    "expandable_segments:True,limit": ["tight", "tight"],
    "max_split_size_mb:32,limit": ["tight", "tight"],
    "garbage_collection_threshold:0.6,limit": ["tight", "tight", "steps"],
    "large_segment_size_mb:32": ["churn", "steps"],
}


def events_of(said, settings):
    """The input of replay_events for one program's history."""
    lines = [f"version {said['version']}", f"total {said['total']}"]
    if settings:
        lines.append(f"settings {settings}")
    if said["limit"]:
        lines.append(f"limit {said['limit']}")
    block_at, calls, addresses, events, failures = {}, [], [], [], 0
    for action, address, size, stream in said["history"]:
        if action in TAKES:
            calls.append([TAKES[action], address, size])
        elif action == "alloc":
            block_at[address] = (f"b{len(addresses)}", size)
            events.append(f"alloc b{len(addresses)} {size} {stream}")
            addresses.append(address)
        elif action == "free_completed":
            block, size = block_at.pop(address)
            events.append(f"free {block}")
            if size == MARK:
                events.append("empty")
        elif action == "oom":
            failures += 1
            events.append(f"alloc failed{failures} {size} {stream}")
            addresses.append(0)
    lines += [f"device {kind} {address} {size}" for kind, address, size in calls]
    return "\n".join(lines + events) + "\n", calls, addresses


@pytest.mark.parametrize("settings", CASES, ids=lambda s: s or "default")
def test_replay_equals_the_allocator(build, settings):
    own = ",".join(part for part in settings.split(",") if part != "limit") if "[" not in settings else settings
    done = subprocess.run([PYTHON, HERE / "replay_programs.py", settings, *CASES[settings]], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": own})
    if done.returncode and "nrecognized" in done.stderr:
        pytest.skip("this PyTorch does not know the setting")
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run["program"] for run in runs] == CASES[settings]
    for number, said in enumerate(runs):
        what = (settings, number, said["program"])
        assert said["clean"], what
        text, calls, addresses = events_of(said, own)
        replayed = json.loads(subprocess.run([build / "replay_events"], input=text, capture_output=True, text=True, check=True).stdout)
        made = [list(call) for call in replayed["calls"]]
        first = next((i for i, (a, b) in enumerate(zip(made, calls)) if a != b), min(len(made), len(calls)))
        assert made == calls, (what, first, made[first:first + 3], calls[first:first + 3])
        assert replayed["addresses"] == addresses, what
        assert (replayed["reserved_peak"], replayed["flushes"], replayed["failures"]) == (said["reserved_peak"], said["retries"], said["ooms"]), what


@pytest.mark.parametrize("settings", ["", "expandable_segments:True", "roundup_power2_divisions:4"])
def test_whatif_of_a_recording_equals_pytorchs_counters(vramscope, tmp_path, settings):
    """From the trace alone: the pool that the replay with the settings of the recording finds is PyTorch's."""
    done = subprocess.run([vramscope, "run", "-o", tmp_path / "out", "--quiet", "--", PYTHON, HERE / "torch_training.py"],
                          env={**os.environ, **({"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {})}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    recording = Recording(vramscope, tmp_path / "out", done.stdout)
    answer = json.loads(subprocess.check_output([vramscope, "whatif", recording.trace, "--json"], text=True))
    peak = recording.said["reserved_peak"]
    row = answer["rows"][0]
    assert row["name"] == "recorded" and row["reserved_low"] <= peak <= row["reserved_high"], (peak, row)
    if "expandable" not in settings:
        assert answer["recorded"] == peak and answer["exact"], answer


def test_tensorflow_pool_on_the_gpu(vramscope, tmp_path):
    """BFC on the card: the replay takes the same regions in the same order."""
    python = os.environ.get("PYTHON_GPU", sys.executable)
    if subprocess.run([python, "-c", "import tensorflow"], capture_output=True).returncode:
        pytest.skip("TensorFlow is not installed for this Python")
    done = subprocess.run([vramscope, "run", "-o", tmp_path / "out", "--quiet", "--", python, HERE / "api_programs.py", "every_batch"],
                          env={**os.environ, "TF_FORCE_GPU_ALLOW_GROWTH": "true",
                               "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent.parent / "python"), os.environ.get("PYTHONPATH")]))},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    recording = Recording(vramscope, tmp_path / "out", done.stdout)
    answer = json.loads(subprocess.check_output([vramscope, "whatif", recording.trace, "--json"], text=True))
    assert answer["exact"] and answer["rows"][0]["reserved"] == answer["recorded"], answer
