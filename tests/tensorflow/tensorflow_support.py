"""Reading a recording of a TensorFlow program back, and counting it by hand."""
import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Recording:
    """A finished recording: what the program printed, and the trace of its one process."""

    def __init__(self, vramscope, folder, printed):
        self.vramscope, self.folder = vramscope, folder
        self.said = json.loads(printed.splitlines()[-1])
        traces = sorted(folder.glob("*.vram"))
        assert len(traces) == 1, f"one process allocates, so one trace: {traces}"
        self.trace = traces[0]

    def summary(self):
        return json.loads(subprocess.check_output([self.vramscope, "summary", "--json", self.trace]))

    def pool(self, name):
        pools = [p for p in self.summary()["pools"] if p["name"] == name]
        assert len(pools) == 1, self.summary()["pools"]
        return pools[0]

    def events(self):
        lines = subprocess.check_output([self.vramscope, "dump", "--jsonl", self.trace], text=True, errors="surrogateescape")
        return [json.loads(line) for line in lines.splitlines()]


def replay(events, pool):
    """Counts by hand what a pool's events add up to: the state after the last event."""
    live, state = {}, {"allocs": 0, "peak_bytes": 0, "end_bytes": 0, "largest_alloc_bytes": 0}
    for event in events:
        if event["event"] == "alloc" and event["pool"] == pool:
            assert event["address"] not in live, f"{event['address']:#x} is live twice at seq {event['seq']}"
            live[event["address"]] = event["granted"]
            state["allocs"] += 1
            state["end_bytes"] += event["granted"]
            state["peak_bytes"] = max(state["peak_bytes"], state["end_bytes"])
            state["largest_alloc_bytes"] = max(state["largest_alloc_bytes"], event["granted"])
        elif event["event"] == "free" and event["pool"] == pool:
            state["end_bytes"] -= live.pop(event["address"])
    return state
