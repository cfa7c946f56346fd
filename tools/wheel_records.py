#!/usr/bin/env python3
"""Records with an installed vramscope, and compares with what the frameworks counted themselves. Needs nothing but Python 3.9.

    venv/bin/python tools/wheel_records.py [python] [tensorflow] [torch]      in the environment that has the wheel and the frameworks

`python` records a program that uses no framework, so that it works with every Python. Ends with code 1 if anything differs.
"""
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS / "tensorflow"))

from tensorflow_support import Recording, replay  # noqa: E402

PROGRAM = Path(sys.executable).parent / "vramscope"
CPU_POOL = "bfc_cpu_allocator_for_gpu"
MARKS = "import json, vramscope\nfor step in range(3):\n    vramscope.mark(f'turn {step}')\nprint(json.dumps({'turns': 3}))\n"


def record(folder, *command):
    environment = {**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    done = subprocess.run([PROGRAM, "run", "-o", folder, "--", sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"wheel: {' '.join(map(str, command))} ended with code {done.returncode} under vramscope run")
    return Recording(PROGRAM, Path(folder), done.stdout)


def scope_marks(events):
    return {e["name"]: i for i, e in enumerate(events) if e["event"] == "mark" and e["kind"] == "scope"}


def of_python(folder):
    """The package speaks with the recorder: marks of the program are in its trace."""
    recording = record(folder, "-c", MARKS)
    return "marks", sorted(scope_marks(recording.events())), [f"turn {step}" for step in range(recording.said["turns"])]


def of_tensorflow(folder):
    """Bytes in use and peak at the end of a training run: get_memory_info's."""
    recording = record(folder, TESTS / "tensorflow/workload.py", "fit")
    events = recording.events()
    end = next(i for i, e in enumerate(events) if e["event"] == "mark" and e["kind"] == "check" and e["name"] == "end")
    counted = replay(events[:end], CPU_POOL)
    ours = counted["end_bytes"], counted["peak_bytes"], recording.pool(CPU_POOL)["peak_bytes"]
    return f"TensorFlow {recording.said['version']}: bytes at the end, peak, peak in the summary", ours, (
        recording.said["current"], recording.said["peak"], recording.said["peak"])


def of_torch(folder):
    """Every allocation and free of three steps, one by one: those of PyTorch's profiler."""
    recording = record(folder, TESTS / "torch/workload.py", "profiled")
    events = recording.events()
    marks = scope_marks(events)
    ours = [[e["address"], e["granted"] if e["event"] == "alloc" else -e["granted"]]
            for e in events[marks["begin"]:marks["end"]] if e["event"] in ("alloc", "free")]
    theirs = [event[:2] for event in recording.said["events"]]
    # The profiler starts a little before the first mark and stops a little after the last one.
    start = next((i for i in range(50) if theirs[i:i + 20] == ours[:20]), 0)
    return f"PyTorch: {len(ours)} events", ours, theirs[start:start + len(ours)]


CASES = {"python": of_python, "tensorflow": of_tensorflow, "torch": of_torch}


def main():
    wrong = 0
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            what, ours, theirs = CASES[name](folder)
        equal = ours == theirs and len(ours) > 0
        wrong += not equal
        print(f"{what}: {'equal' if equal else 'NOT EQUAL'}{'' if len(ours) > 9 else f', {ours}'}" + ("" if equal else f"\nexpected {theirs}"))
    libc = " ".join(platform.libc_ver())
    print(f"wheel: {'FAILED' if wrong else 'ok'}, Python {platform.python_version()}, {libc}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
