"""Replays of ten million events, and what follows a slider: the smallest device memory for one step of 3,000 events."""
import json
import subprocess

from measure.tree import Measured

NAMES = ["replay_s", "replay_step_ms"]
EVENTS = 10_000_000


def measure(tree):
    done = subprocess.run([tree.build / "bench/micro/replay_speed", str(EVENTS)], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    print(done.stdout)
    return {"replay_s": Measured(max(said["replay_s"].values())), "replay_step_ms": Measured(max(said["step_ms"].values()))}
