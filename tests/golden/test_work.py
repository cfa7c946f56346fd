"""The author of a trace cannot keep a reader busy: files of a few kilobytes with valid checksums that claim a lot of work.

The limits on CPU time are at least ten times what an answer takes (0.2 s, a report 4 s). Without the bounds, none is kept.
"""
import json
import os
import pickle
import random
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("VRAMSCOPE_BUILD", Path(__file__).resolve().parent.parent.parent / "build"))
CPU_S = 5
REPORT_CPU_S = 40
FIT_CPU_S = 40
WHATIF_CPU_S = 20
MOST_EXPORTED = 1 << 30
DAMAGED = Path(__file__).resolve().parent.parent / "traces/damaged"


def answer(folder, *words, seconds=CPU_S):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    return subprocess.run([BUILD / "vramscope", *words], cwd=folder, capture_output=True, text=True, preexec_fn=limit,
                          env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")})


@pytest.fixture(scope="module")
def forged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    for case in ("manyphases", "longsettings", "busytimeline", "longowner", "manyregions", "manypools", "manydevices", "highdevice", "sameslot"):
        subprocess.run([BUILD / "tracegen", case, folder / f"{case}.vram"], check=True, capture_output=True)
        assert (folder / f"{case}.vram").stat().st_size < 300_000
    return folder


@pytest.mark.parametrize("verb", ["summary", "steps"])
def test_very_many_phases(forged, verb):
    done = answer(forged, verb, "--json", "manyphases.vram")
    assert done.returncode in (0, 2), (done.returncode, done.stderr)
    phases = json.loads(done.stdout)["phases"]
    # Scopes that never end: nothing is allocated in them, and all blocks before them are live.
    assert len(phases) == 2 * 65536
    assert {(p["peak"], p["growth_kept"], p["allocs"]) for p in phases} == {(4 * 65536 * 256, 0, 0)}


@pytest.mark.parametrize("verb", ["summary", "peak", "ledger", "leaks", "oom"])
def test_very_many_long_settings(forged, verb):
    done = answer(forged, verb, "--json", "longsettings.vram")
    assert done.returncode in (0, 2), (done.returncode, done.stderr)
    if verb == "summary":
        settings = json.loads(done.stdout)["settings"]
        assert len(settings) == 16 and all(len(value) == 64_000 for value in dict(settings).values())


def test_a_mark_and_a_tag_at_one_position(tmp_path):
    done = answer(tmp_path, "summary", DAMAGED / "mark-at-tag.vram")
    assert done.returncode == 2 and "chunks could not be read" in done.stderr, (done.returncode, done.stderr)


def test_very_many_blocks_of_an_owner_with_a_long_path(forged):
    done = answer(forged, "ledger", "--json", "longowner.vram")
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert "x" * 60_000 in done.stdout


@pytest.mark.parametrize("verb", ["summary", "fragmentation", "ledger"])
def test_very_many_regions(forged, verb):
    done = answer(forged, verb, "--json", "manyregions.vram")
    assert done.returncode == 0, (done.returncode, done.stderr)
    if verb == "summary":
        place = json.loads(done.stdout)["overview"]["places"][0]
        assert (place["regions_peak"], place["regions_end"]) == (4 * 65536 * 4096, 0)


def test_sizes_that_share_one_slot(forged):
    done = answer(forged, "summary", "sameslot.vram")
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)


def test_very_many_pools(forged):
    """No process has as many: what refers to them cannot be read."""
    done = answer(forged, "summary", "manypools.vram")
    assert done.returncode == 2 and "a table is longer than the format allows" in done.stderr, (done.returncode, done.stderr)


# --- exports: what is written again and again ---------------------------------------------------------------------------------------------

def test_a_snapshot_of_very_many_devices(forged):
    """Each has a list of its own, which must not take a look at all events of all devices."""
    done = answer(forged, "export", "manydevices.vram", "--to", "torch-snapshot", "-o", "many.pickle")
    assert done.returncode == 0, (done.returncode, done.stderr)
    traces = pickle.loads((forged / "many.pickle").read_bytes())["device_traces"]
    events = [sum(not entry["action"].startswith("segment") for entry in trace) for trace in traces]
    assert len(events) == 250 and set(events) == {8 * (65536 // 250), 8 * (65536 // 250 + 1)}


def test_a_snapshot_of_a_device_with_a_high_number(forged):
    """The format has a list for each device up to it."""
    done = answer(forged, "export", "highdevice.vram", "--to", "torch-snapshot", "-o", "high.pickle")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "1099511627776" in done.stderr, (done.returncode, done.stderr)
    assert not list(forged.glob("*high.pickle*"))


@pytest.mark.parametrize("to", ["csv", "jsonl"])
def test_a_table_does_not_repeat_a_long_name_without_end(forged, to):
    """262,144 rows with a name of 60 KB: 16 GB from a file of 60 KB."""
    command = [BUILD / "vramscope", "export", "longowner.vram", "--to", to, "-o", "-"]
    with subprocess.Popen(command, cwd=forged, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as export:
        written = 0
        while (piece := export.stdout.read(1 << 20)) and written <= MOST_EXPORTED:
            written += len(piece)
        export.stdout.close()
        said = export.stderr.read().decode()
    assert written <= MOST_EXPORTED, "it goes on and on"
    assert export.returncode == 2 and said.count("\n") == 1 and "would be larger than" in said, (export.returncode, said)


# --- forecasts: very many replays of very many events ------------------------------------------------------------------------------------

def test_a_forecast_of_very_many_events(forged):
    done = answer(forged, "fit", "busytimeline.vram", "--batches", "8", seconds=FIT_CPU_S)
    assert done.returncode == 2 and done.stdout == "", (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1 and "too much work" in done.stderr and "--on" in done.stderr, done.stderr


def test_a_report_of_very_many_live_blocks(forged):
    done = answer(forged, "report", "busytimeline.vram", "-o", "busy.html", seconds=REPORT_CPU_S)
    assert done.returncode in (0, 2), (done.returncode, done.stderr)
    assert (forged / "busy.html").stat().st_size > 100_000


def test_many_small_files_cannot_take_the_machines_memory(tmp_path, run_measured):
    """Each is within its limit, all of them together are not: a line for each that was left out, and one that ends it."""
    runs = tmp_path / "many"
    runs.mkdir()
    subprocess.run([BUILD / "tracegen", "million", runs / "host-1-2026.vram"], check=True, capture_output=True)
    for i in range(2, 25):
        shutil.copy(runs / "host-1-2026.vram", runs / f"host-{i}-2026.vram")
    size = sum(path.stat().st_size for path in runs.iterdir())
    memory, code, _, err = run_measured([BUILD / "vramscope", "report", "many"], cwd=tmp_path)
    assert memory <= (512 << 20) + 256 * size, (memory, err)
    assert code == 2, (code, err)
    lines = err.splitlines()
    assert lines and all(line.startswith("vramscope: ") and "not enough memory: " in line for line in lines), err
    assert all(line.startswith("vramscope: many/host-") for line in lines[:-1]), err


# --- what other allocators would need: sizes and patterns that no program has, as a log that anybody can write -----------------------------

def write_log(file, events):
    """The CSV log of RAPIDS' memory manager, which every verb opens."""
    lines = [f"1,00:00:00.{i % 1_000_000:06},{action},{address:#x},{size},0x0\n" for i, (action, address, size) in enumerate(events)]
    file.write_text("Thread,Time,Action,Pointer,Size,Stream\n" + "".join(lines))


ABSURD = (2**64 - 1, 2**64 - 511, 2**63, 2**48, 2**48 - 1, 2**46, 2**40, 1 << 20, 100)


@pytest.mark.parametrize("allocator", ["", "default", "expandable", "divisions", "max-split", "growth", "preallocated", "async", "none"])
def test_whatif_with_sizes_that_no_device_has(tmp_path, allocator):
    rng = random.Random(3)
    live, events = [], []
    for i in range(1, 400):
        if live and rng.random() < 0.45:
            events.append(("free", live.pop(rng.randrange(len(live))), 0))
        else:
            live.append(i << 12)
            events.append(("allocate", i << 12, rng.choice(ABSURD)))
    write_log(tmp_path / "absurd.csv", events)
    done = answer(tmp_path, "whatif", "absurd.csv", "--json", *(["--allocator", allocator] if allocator else []))
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert json.loads(done.stdout)["rows"]


def test_whatif_of_more_events_than_a_file_of_its_size_has(forged):
    """Each replay is fast, but there are as many of them as for a recording that is a thousand times as large."""
    done = answer(forged, "whatif", "busytimeline.vram", seconds=WHATIF_CPU_S)
    assert done.returncode == 2 and done.stdout == "", (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1 and "too much work" in done.stderr, done.stderr


def test_whatif_with_very_many_small_holes(tmp_path):
    """Half of many small blocks is freed; large ones follow, which fit into none of the holes."""
    count = 60_000
    small = [(i + 1) << 12 for i in range(count)]
    write_log(tmp_path / "holes.csv", [("allocate", at, 1024) for at in small] + [("free", at, 0) for at in small[::2]] +
              [("allocate", (i + 1) << 32, 2 << 20) for i in range(count)])
    done = answer(tmp_path, "whatif", "holes.csv", "--allocator", "async", "--json")
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_whatif_with_very_many_flushes(tmp_path):
    """Each large block is larger than the one before: where memory is short, each looks at all free blocks for something to return."""
    count = 40_000
    small = [(i + 1) << 12 for i in range(count)]
    large = [event for i in range(8000) for event in (("allocate", 1 << 45, (20 + 2 * i) << 20), ("free", 1 << 45, 0))]
    write_log(tmp_path / "flushes.csv", [("allocate", at, 512) for at in small] + [("free", at, 0) for at in small[::2]] + large)
    done = answer(tmp_path, "whatif", "flushes.csv", "--allocator", "default", "--limit", "17GiB")
    assert done.returncode == 2 and done.stdout == "", (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1 and "too much work" in done.stderr


def test_fit_within_its_memory(tmp_path, run_measured):
    """All runs are open at the same time."""
    count = 14
    subprocess.run([BUILD / "tracegen", "million", tmp_path / "0.vram"], check=True, capture_output=True)
    for i in range(1, count):
        shutil.copy(tmp_path / "0.vram", tmp_path / f"{i}.vram")
    size = sum(path.stat().st_size for path in tmp_path.glob("*.vram"))
    memory, code, _, err = run_measured([BUILD / "vramscope", "fit", *(f"{i}.vram" for i in range(count)), "--on", "1MiB",
                                         "--batches", ",".join(str(i + 1) for i in range(count))], cwd=tmp_path)
    assert memory <= (512 << 20) + 256 * size, (memory, err)
    assert code == 2 and err.count("\n") == 1 and "not enough memory" in err, (code, err)
