#!/usr/bin/env python3
"""Makes the seeds of the fuzz targets: from the sample traces, random decisions, and texts. Inputs that once failed are added by hand.

    fuzz/make_corpus.py
    fuzz/make_corpus.py --decisions FOLDER COUNT SEED   only files of random decisions, for the *_reseal targets
    fuzz/make_corpus.py --spools FOLDER COUNT SEED      only damaged spools, for the target `spool`
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


def spool_seeds():
    """Changes to a healthy spool, as targets/spool.cpp reads them."""
    def head(seq, kind, slots, flags=0, pool=0, small=0):
        return struct.pack("<QQBBHBBH", seq, 1000 + seq, kind, flags, slots, pool, 0, small)

    def records(segment, data):
        assert len(data) < 256
        return struct.pack("<BBB", 2, segment, len(data)) + data

    def patch(offset, value):
        return struct.pack("<BHQ", 0, offset, value)

    def patch_segment(segment, offset, value):
        return struct.pack("<BBBQ", 1, segment, offset, value)

    def text(number, word):
        return (head(0, 32, 2) + struct.pack("<II", number, len(word)) + word).ljust(64, b"\0")

    def alloc(seq, address, op=1, stack=0, requested=100):
        fixed = head(seq, 1, 3, flags=1) + struct.pack("<QQQqII", address, requested, 256, seq, op, op)
        return fixed + struct.pack("<QQIIQ", stack, 0, op, 0, 0)

    def free(seq, address, kind=2):
        return head(seq, kind, 1) + struct.pack("<Q", address)

    stack = (head(0, 33, 4) + struct.pack("<QII", 7, 3, 2) + struct.pack("<IIQ", 1, 10, 0) + struct.pack("<IIQ", 0, 0, 0x5000) +
             struct.pack("<IIQ", 2, 4, 0)).ljust(128, b"\0")
    code = (head(0, 34, 2) + struct.pack("<IIII", 1, 1, 2, 5)).ljust(64, b"\0")
    module = (head(0, 35, 2) + struct.pack("<QQII", 0x4000, 0x4000, 1, 2)).ljust(64, b"\0")
    source = (head(0, 36, 2) + struct.pack("<IIIIII", 1, 2, 1, 9, 1, 0)).ljust(64, b"\0")
    names = records(0, text(1, b"op") + text(2, b"file.py")) + records(0, code + module) + records(0, stack) + records(0, source)
    some = b"".join(records(i % 3, alloc(4 * i + 1, i << 12, stack=7) + free(4 * i + 2, i << 12)) for i in range(6))
    others = b"".join((records(1, (head(50 + i, kind, 3, flags=255, small=3) + struct.pack("<9Q", *[i] * 9)).ljust(96, b"\0"))) for i, kind in enumerate(range(3, 12)))
    return {
        "healthy": names + some,
        "all-kinds": names + some + others,
        "huge-numbers": names + patch(64, 1 << 63) + b"".join(records(1, free(1 << 40 + i, i)) for i in range(12)),
        "far-ids": records(0, text(0xFFFFFFFF, b"far")) + records(0, alloc(1, 4096, op=0xFFFFFFFF)) + some,
        "many-failures": names + b"".join(records(1, head(i + 1, 7, 2, flags=8) + bytes(40)) for i in range(20)),
        "states": names + some + b"".join(patch_segment(i, 0, i << 32 | i) for i in range(8)),
        "definitions": b"".join(struct.pack("<BB", 3, len(each)) + each for each in (text(1, b"kept"), code, stack, module)) + some,
        "even-sizes": names + b"".join(records(0, alloc(i, i << 20, requested=i << 8)) for i in range(1, 81)),
        "reports": names + some + b"".join(
            records(1, (head(60 + i, 11, 3, small=kind) + struct.pack("<4Q5I", i, 1 << 63, 3, 4, 1, 2, 1, 2, 0xFFFFFFFF - i)).ljust(96, b"\0"))
            for i, kind in enumerate(range(14, 24))),
        "cancelled": names + records(1, alloc(1, 4096) + free(2, 4096) + free(3, 4096, kind=10)),
    }


FILTERS = ["", "layer:dense_1", "layer:conv* and size>1MiB", "not category:activations", "(op:MatMul or op:Relu) and step:2", "age>2ms",
           "lifetime<3steps", "born@peak", "live@6.2s", "address:0x7f00-0x8000", "size>=1e3KiB", "name:\"a b\" or name:'c'", "pool:GPU*", "step:outside",
           "stack:train.py", "((((((((x))))))))", "not not not x", "time>1s and time<2s", "dtype:float32 shape:64*"]
BUDGETS = ['peak = "8MiB"\nooms = 0\n[category]\n"optimizer state" = "2MiB"  # more\n[layer]\n\'dense#1\' = "1MiB"\n',
           'steady_peak = "80%"\ngrowth = "1KiB"\nfragmentation = 0.2\n', '[baseline]\npeak = "+5%"\n', "peak: 8MiB\ncategory:\n  activations: 1MiB\n",
           "category = { inputs = 1, gradients = '1MB' }\nlayer.a.b.c = [[{x = 1979-05-27T07:32:00Z}]]\nend = 0x10\n[[baseline]]\n", "a." * 400 + "a = 1"]
XLA = """BufferAssignment:
allocation 0: size 65536, parameter 0, shape |f32[64,256]| at ShapeIndex {}:
 value: <12 p0 @0> (size=65536,offset=0): f32[64,256]{1,0}
allocation 3: size 131072, preallocated-temp:
 value: <345 MatMul.8 @0> (size=65536,offset=0): f32[64,256]{1,0}
 value: <346 Relu.9 @0> (size=65536,offset=65536): f32[64,256]{1,0}

Used values:
<345 MatMul.8 @0>
 positions:
  MatMul.8
 from instruction: %MatMul.8 = f32[64,256]{1,0} dot(%a, %b), metadata={op_type="MatMul" op_name="model/dense/MatMul"}
HloLiveRange (max 44):
  InstructionSequence:
    0:p0
  BufferLiveRange:
    MatMul.8{}:22-44
    Relu.9{}:30-44
  Live ranges at 44 (peak):
    MatMul.8: 65536 bytes
"""
JSON = ['{"kind": "held_tensors", "file": "Gr\\u00f6\\u00dfe.py", "line": 31, "count": 12, "bytes": 18446744073709551615}', "[" * 70 + "]" * 70,
        '[null, true, false, -0, 1e308, 1e309, 0.1, -9223372036854775808, "\\ud83d\\ude00", "\\ud800", {"a": {"a": []}, "a": 1}]', '{"a":1,}', '"\xff', " 1 2", ""]
HEADS = ["GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n", "GET /api/live?trace=0&at=peak HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
         "HEAD /a%20b HTTP/1.0\r\nCookie: token=abc; x=\r\nAccept-Encoding: gzip, br\r\n\r\n", "POST / HTTP/1.1\nContent-Length: 5\n\nhello",
         "GET  HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\n:\r\na:b\r\nA: c\r\n\r\n"]

REQUESTS = ["hello?", "overview?trace=0", "steps?trace=0", "stack?trace=0&by=layer&filter=phase%3Abackward&level=14&tile=0", "tracks?trace=0&level=12&tile=1",
            "marks?trace=0&level=50&tile=1099511627776", "instant?trace=0&at=step%3A3%2B1ms&filter=", "range?trace=0&t0=-1e308&t1=1e308&filter=",
            "range?trace=0&t0=5&t1=3&filter=", "place?trace=0&moment=18446744073709551615&go=next-peak", "peak?trace=0&at=peak&open=category%2Clayer%2Cop%2Cline&filter=",
            "peak?trace=0&at=oom&open=%2C%2C&filter=(", "layers?trace=0&at=steady&filter=size%3E1", "leaks?trace=0", "map?trace=0&at=end&pool=GPU_0_bfc",
            "block?trace=0&id=18446744073709551615", "ooms?trace=0", "diff?a=0&b=0&at=same&by=layer", "source?trace=0&at=peak&file=..%2F..%2Fetc%2Fpasswd",
            "suggest?trace=0&text=layer%3A", "overview?trace=99", "peak?", "%70eak?trace=%30&&=&a=b=c&at=%", "unknown?x"]


def write_decisions(folder, count, seed):
    """What the targets that change and reseal a good file make their choices from."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    for i in range(count):
        (folder / f"random-{i:04}").write_bytes(rng.randbytes(rng.choice((8, 16, 32, 64))))


def write_spools(folder, count, seed):
    """Changes that damage a healthy spool: of the header, of heads of segments, of records, and records of any bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    seeds = list(spool_seeds().values())

    def number():
        return rng.choice((0, 1, 0xFF, 1 << 16, (1 << 32) - 1, 1 << 32, 1 << 63, (1 << 64) - 1, rng.getrandbits(64)))

    def change():
        kind = rng.randrange(4)
        if kind == 0:
            return struct.pack("<BHQ", 0, rng.randrange(1 << 16), number())
        if kind == 1:
            return struct.pack("<BBBQ", 1, rng.randrange(256), rng.randrange(256), number())
        data = rng.randbytes(32 * rng.randrange(1, 7))
        return (struct.pack("<BBB", 2, rng.randrange(256), len(data)) if kind == 2 else struct.pack("<BB", 3, len(data))) + data

    for i in range(count):
        spool = bytearray(rng.choice(seeds))
        for _ in range(rng.randrange(8)):                # bytes of records and of changes
            spool[rng.randrange(len(spool))] = rng.randrange(256)
        (folder / f"damaged-{i:04}").write_bytes(bytes(spool) + b"".join(change() for _ in range(rng.randrange(1, 8))))


def write_texts(folder, texts):
    folder.mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(texts):
        (folder / f"{i:02}").write_bytes(text.encode())


def main():
    corpus = ROOT / "fuzz/corpus"
    write_texts(corpus / "filter", FILTERS)
    write_texts(corpus / "budget", BUDGETS)
    write_texts(corpus / "json", JSON)
    write_texts(corpus / "xla_dump", [XLA])
    write_texts(corpus / "http_head", HEADS)
    write_texts(corpus / "request", REQUESTS)
    write_decisions(corpus / "trace_reseal", 12, seed=2)
    write_decisions(corpus / "index_reseal", 12, seed=3)
    for target in ("spool", "trace_reader", "trace_payload", "trace_round_trip"):
        (corpus / target).mkdir(parents=True, exist_ok=True)
    samples = sorted((ROOT / "tests/traces").glob("**/*.vram"))
    for sample in samples:
        shutil.copy(sample, corpus / "trace_reader" / sample.stem)
        seed = payload_seed(sample.read_bytes())
        if seed and sample.parent.name == "traces":
            (corpus / "trace_payload" / sample.stem).write_bytes(seed)
    for name, seed in spool_seeds().items():
        (corpus / "spool" / name).write_bytes(seed)
    rng = random.Random(1)
    for i, size in enumerate((50, 300, 1000, 2000)):
        for limit in (b"\x00", b"\xa0"):
            (corpus / "trace_round_trip" / f"random-{i}-{limit.hex()}").write_bytes(limit + bytes(rng.randrange(128) for _ in range(size)))


if __name__ == "__main__":
    only = {"--decisions": write_decisions, "--spools": write_spools}.get("".join(sys.argv[1:2]))
    if only:
        only(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
