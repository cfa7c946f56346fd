"""The author of a profile cannot keep a reader busy: a few bytes that refer to a long name, and numbers that all share one slot of a table.

The limit on CPU time is at least five times what an answer takes. Without the bounds, it takes minutes to hours.
"""
import gzip
import os
import pickle
import re
import resource
import subprocess
from pathlib import Path
from random import Random

import pytest

BUILD = Path(os.environ.get("VRAMSCOPE_BUILD", Path(__file__).resolve().parent.parent.parent / "build"))
CPU_S = 8
LONG = b"x" * (1 << 20)


def summary(file):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    return subprocess.run([BUILD / "vramscope", "summary", file], capture_output=True, text=True, preexec_fn=limit,
                          env={**os.environ, "XDG_CACHE_HOME": str(file.parent / "cache")})


def answered_or_refused(file):
    done = summary(file)
    assert done.returncode in (0, 2), (done.returncode, done.stderr)
    assert done.returncode == 0 or (done.stdout == "" and done.stderr.count("\n") == 1), done.stderr


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def pprof(rest):
    texts = (b"", b"allocations", b"count", b"space", b"bytes", b"device", LONG)
    return field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4)) + b"".join(field(6, text) for text in texts) + rest


def pprof_frames():
    lines = b"".join(field(4, field(1, 1) + field(2, line)) for line in range(128))
    sample = field(2, field(1, 1) + field(2, varint(1) + varint(256)))
    return pprof(field(5, field(1, 1) + field(2, 6) + field(4, 6)) + field(4, field(1, 1) + lines) + 3000 * sample)


def pprof_devices():
    return pprof(100_000 * field(2, field(2, varint(1) + varint(256)) + field(3, field(1, 5) + field(2, 6))))


def xplane():
    def name(number, text):
        return field(1, number) + field(2, field(2, text))
    names = (b"allocator_name", b"tf_op", b"addr", b"allocation_bytes", LONG, b"GPU_0_bfc")
    stats = field(4, field(1, 1) + field(7, 6)) + field(4, field(1, 2) + field(7, 5)) + field(4, field(1, 4) + field(3, 256))
    events = b"".join(field(4, field(1, 1) + stats + field(4, field(1, 3) + field(3, i << 12))) for i in range(1, 60_000))
    return field(1, field(2, b"/host:CPU") + field(4, name(1, b"MemoryAllocation")) +
                 b"".join(field(5, name(i + 1, text)) for i, text in enumerate(names)) + field(3, events))


def torch_frames():
    text = LONG[1:].decode()
    frames = [{"filename": text, "name": text, "line": i} for i in range(60_000)]
    block = {"size": 512, "state": "active_allocated", "frames": frames[:1]}
    return pickle.dumps({"frames": frames, "device_traces": [], "segments": [{"address": 4096, "total_size": 512, "blocks": [block]}]})


def pprof_stacks():
    """Each stack is another one, and each of its frames has a long name."""
    random = Random(1)
    locations = b"".join(field(4, field(1, i) + field(4, field(1, 1) + field(2, i))) for i in range(1, 128))
    samples = (field(2, field(1, bytes(random.randrange(1, 128) for _ in range(128))) + field(2, varint(1) + varint(256))) for _ in range(5000))
    return pprof(field(5, field(1, 1) + field(2, 6) + field(4, 6)) + locations + b"".join(samples))


def torch_segments():
    """Two bytes for each further mention of a segment with very many blocks."""
    block = {"size": 512, "state": "inactive"}
    segment = {"address": 4096, "total_size": 512, "blocks": [block] * 500_000}
    return pickle.dumps({"segments": [segment] * 500_000, "device_traces": []}, 4)


def torch_members():
    """The same for a dictionary with very many members."""
    block = {**{f"k{i}": 0 for i in range(50_000)}, "size": 512, "state": "inactive"}
    return pickle.dumps({"segments": [{"address": 4096, "total_size": 512, "blocks": [block] * 500_000}], "device_traces": []}, 4)


@pytest.mark.parametrize("profile", [pprof_frames, pprof_devices, pprof_stacks, xplane, torch_frames, torch_segments, torch_members])
def test_very_many_uses_of_a_long_name(tmp_path, profile):
    (tmp_path / "profile.gz").write_bytes(gzip.compress(profile()))
    answered_or_refused(tmp_path / "profile.gz")


def test_addresses_that_share_one_slot(tmp_path):
    """Multiples of the sizes that a table of the standard library has while it grows to these many entries."""
    stride = 172933 * 351061
    events = (f'{{"name":"[memory]","ts":{i},"args":{{"Bytes":512,"Addr":{i * stride},"Device Type":1,"Device Id":0}}}}' for i in range(1, 200_000))
    (tmp_path / "profile.json").write_text(f'{{"traceEvents": [{",".join(events)}]}}')
    assert summary(tmp_path / "profile.json").returncode == 0


def test_a_profile_that_unpacks_to_a_lot(tmp_path):
    line = b"1,00:00:00.000001,allocate,0x1000,256,0x0\n"
    (tmp_path / "log.gz").write_bytes(gzip.compress(b"Thread,Time,Action,Pointer,Size,Stream\n" + 4_000_000 * line))
    done = summary(tmp_path / "log.gz")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, (done.returncode, done.stderr)
    assert re.search(r"log\.gz: unpacks to more than \d+\.\d MiB, .*; if you trust it, unpack it with gunzip first", done.stderr), done.stderr


@pytest.mark.parametrize("name", ["profile.csv", "profile.bin", "profile.vram"])
def test_a_file_of_holes_takes_no_memory(tmp_path, run_measured, name):
    (tmp_path / name).write_text("Thread,Time,Action,Pointer,Size,Stream\n")
    os.truncate(tmp_path / name, 3 << 30)
    memory, code, _, err = run_measured([BUILD / "vramscope", "summary", name], cwd=tmp_path)
    assert memory <= 512 << 20, (memory, err)
    assert code == 2 and err.count("\n") == 1 and name in err, (code, err)
