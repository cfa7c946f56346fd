"""The built tree, and how measurements use it."""
import json
import os
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class Measured:
    """A number, perhaps with a confidence interval: a budget holds if all of it lies below, is exceeded if all of it lies above."""
    value: float
    low: float | None = None
    high: float | None = None

    def verdict(self, budget):
        low, high = (self.value, self.value) if self.low is None else (self.low, self.high)
        return "EXCEEDED" if low > budget else "ok" if high <= budget else "unclear"

    def __str__(self):
        text = f"{self.value:.2f}" if self.value < 100 else f"{self.value:.0f}"
        return text if self.low is None else f"{text} [{self.low:.2f}, {self.high:.2f}]"


class Tree:
    def __init__(self):
        self.build = Path(os.environ.get("VRAMSCOPE_BUILD", ROOT / "build"))
        self.program = self.build / "vramscope"
        self.library = self.build / "libvramscope_inject.so"
        self.tf_events = self.build / "bench/micro/tf_events"
        self.python = Path(os.environ.get("VRAMSCOPE_PYTHON_TF221", ROOT / ".venv/bin/python"))

    @contextmanager
    def preloaded(self, spool_bytes=2 << 20):
        """Environment that records without a collector: segments of a small spool are used again and again, as in a steady state."""
        where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="vramscope-bench-", dir=where) as spool:
            yield {**os.environ, "LD_PRELOAD": str(self.library), "VRAMSCOPE_SPOOL": spool,
                   "VRAMSCOPE_SPOOL_LIMIT": str(spool_bytes), "VRAMSCOPE_CLOCK": "tsc"}

    def events(self, pairs, names, environment=None, prefix=(), pause_us=0):
        """What tf_events prints, and its stderr."""
        command = [*map(str, prefix), str(self.tf_events), str(pairs), str(names), str(pause_us)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1]), done.stderr
