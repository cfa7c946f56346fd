"""Size of a trace and speed of its reader, on a stream that repeats like a training run."""
import subprocess
import tempfile
from pathlib import Path

from measure.tree import Measured

NAMES = ["trace_stream_bytes", "trace_decode_ns"]
EVENTS = 3_000_000
ROUNDS = 3


def measure(tree):
    program = tree.build / "bench/micro/trace_codec"

    def run(*args):
        text = subprocess.run([program, *args], capture_output=True, text=True, check=True).stdout
        return dict(line.split() for line in text.splitlines())

    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        path = Path(folder) / "training.vram"
        run(path, str(EVENTS))
        runs = [run(path) for _ in range(ROUNDS)]
    return {
        "trace_stream_bytes": Measured(float(runs[0]["bytes_per_event"])),
        "trace_decode_ns": Measured(min(float(said["decode_ns_per_event"]) for said in runs)),
    }
