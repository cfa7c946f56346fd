#!/usr/bin/env python3
"""Makes the damaged traces in tests/traces/damaged/ from v1.0.vram, each broken in one way; mark-at-tag.vram is the
fuzzer's: a trace with valid checksums in which a mark and a tag have one position.

    tests/traces/make_damaged.py
"""
import ctypes
import struct
from pathlib import Path

HERE = Path(__file__).resolve().parent
xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64


def with_version(data, major, minor):
    head = data[:8] + struct.pack("<HH", major, minor) + data[12:32]
    return head + struct.pack("<Q", xxhash.XXH3_64bits(ctypes.c_char_p(head), ctypes.c_size_t(32))) + data[40:]


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1:]


def main():
    whole = (HERE / "v1.0.vram").read_bytes()
    blocks, at = [], 40
    while whole[at:at + 4] == b"VBLK":
        blocks.append((whole[at + 4], at))
        at += 56 + struct.unpack_from("<I", whole, at + 8)[0]
    chunks = [place for kind, place in blocks if kind == 2]
    damaged = {
        "empty": b"",
        "foreign": b"\x7fELF" + bytes(200),
        "newer-major": with_version(whole, 2, 0),
        "bad-header": flipped(whole, 17),
        "bad-names": flipped(whole, blocks[0][1] + 56 + 20),
        "bad-chunk": flipped(whole, chunks[2] + 56 + 100),
        "cut-in-block": whole[:chunks[3] + 56 + 33],
    }
    for name, data in damaged.items():
        (HERE / "damaged" / f"{name}.vram").write_bytes(data)
    (HERE / "newer-minor.vram").write_bytes(with_version(whole, 1, 99))


if __name__ == "__main__":
    main()
