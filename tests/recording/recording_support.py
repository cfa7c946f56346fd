"""Reading what became of the events of spool_producer.cpp."""
import collections
import json
import struct
import subprocess


class Trace:
    """The events of one .vram file, as the dump gives them."""

    def __init__(self, program, path):
        self.path = path
        done = subprocess.run([program, "dump", "--jsonl", "--no-stacks", path], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        self.remark = done.stderr
        self.events = [json.loads(line) for line in done.stdout.splitlines()]

    def kind(self, name):
        return [event for event in self.events if event["event"] == name]

    def settings(self):
        return {event["key"]: event["value"] for event in self.kind("setting")}

    def blocks(self):
        """Producer thread -> numbers of the blocks it allocated, in the order of the trace."""
        found = collections.defaultdict(list)
        for event in self.kind("alloc"):
            address = int(event["address"], 16) if isinstance(event["address"], str) else event["address"]
            found[(address >> 40) - 1].append(address >> 8 & 0xFFFFFFFF)
        return found


class Counters:
    """The page in which the producer counts the calls that have returned."""

    def __init__(self, path):
        self.path = path

    def read(self, threads):
        return struct.unpack(f"{threads}Q", self.path.read_bytes()[:8 * threads])


def check_blocks(trace, completed):
    """Every block of every call that had returned is there once and in order, and at most one more of each thread."""
    blocks = trace.blocks()
    for thread, count in enumerate(completed):
        numbers = blocks.get(thread, [])
        assert numbers == list(range(len(numbers))), f"thread {thread}: not in order, twice or missing"
        assert count <= len(numbers) <= count + 1, f"thread {thread}: {count} calls returned, {len(numbers)} recorded"
