#!/usr/bin/env python3
"""Makes the seeds of the trace's fuzz targets from the sample traces. Inputs that once failed are added by hand.

    fuzz/make_corpus.py
"""
import random
import shutil
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/format"))

import vram_reader  # noqa: E402


def payload_seed(data):
    out = b""
    for block in vram_reader.blocks(data):
        if block.type == 3 or len(block.payload) > 4000:
            continue
        out += struct.pack("<BBHHHH", block.type, block.flags, block.events, block.allocs, block.first_alloc, len(block.payload)) + block.payload
    return out


def main():
    corpus = ROOT / "fuzz/corpus"
    for target in ("trace_reader", "trace_payload", "trace_round_trip"):
        (corpus / target).mkdir(parents=True, exist_ok=True)
    samples = sorted((ROOT / "tests/traces").glob("**/*.vram"))
    for sample in samples:
        shutil.copy(sample, corpus / "trace_reader" / sample.stem)
        seed = payload_seed(sample.read_bytes())
        if seed and sample.parent.name == "traces":
            (corpus / "trace_payload" / sample.stem).write_bytes(seed)
    rng = random.Random(1)
    for i, size in enumerate((50, 300, 1000, 2000)):
        for limit in (b"\x00", b"\xa0"):
            (corpus / "trace_round_trip" / f"random-{i}-{limit.hex()}").write_bytes(limit + bytes(rng.randrange(128) for _ in range(size)))


if __name__ == "__main__":
    main()
