"""Damaged spools and special files where regular ones are expected: an answer or a refusal, never a wait, no matter who put them there."""
import os
import random
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from test_hostile_folders import MARKER, NOBODY, as_root, give_to, killed_run, run_as, shared  # noqa: F401

SECONDS = 10                   # of the processor: a busy machine takes longer
GUARD_S = 600
NEXT_SEQ = 64                  # offsets of src/spool/layout.h
HEADER_BYTES = SEGMENT_BYTES = 65536
FIRST_RECORD = HEADER_BYTES + 64
SLOT = 32
BUDGET = 400 << 20


@pytest.fixture
def spool(vramscope, producer, tmp_path, counters, wait_until):
    """A spool folder as a killed run leaves it, and the folder of its run."""
    link, folder = killed_run(vramscope, producer, tmp_path / "out", counters, wait_until)
    link.unlink()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def processor_seconds():
    """Of all processes that the test has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def recover(vramscope, folder):
    """(exit code, stderr); fails where it hangs."""
    done = subprocess.run([vramscope, "recover", folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder, timeout=GUARD_S)
    return done.returncode, done.stderr


def patch(folder, places):
    path = next(folder.glob("*.spool"))
    with open(path, "r+b") as file:
        for offset, data in places:
            file.seek(offset)
            file.write(data)


@pytest.mark.parametrize("number", [1 << 40, 1 << 62, (1 << 64) - 1])
def test_a_damaged_count_of_events(vramscope, spool, number):
    patch(spool, [(NEXT_SEQ, number.to_bytes(8, "little"))])
    code, errors = recover(vramscope, spool)
    assert code == 0, errors


def test_a_damaged_number_of_an_event(vramscope, spool):
    patch(spool, [(NEXT_SEQ, (1 << 63).to_bytes(8, "little"))] +
          [(FIRST_RECORD + i * SLOT, (1 << 36 + i % 24).to_bytes(8, "little")) for i in range(200)])
    code, errors = recover(vramscope, spool)
    assert code in (0, 2), errors


@pytest.mark.parametrize("name", ["spool", "lock", "defs", "options"])
@pytest.mark.parametrize("what", ["pipe", "link", "folder"])
def test_other_things_under_the_names_of_our_files(vramscope, spool, tmp_path, name, what):
    path = spool / "options" if name == "options" else next(spool.glob("*.spool")).with_suffix("." + name)
    path.unlink(missing_ok=True)
    (tmp_path / "precious").write_text("mine")
    {"pipe": lambda: os.mkfifo(path), "link": lambda: path.symlink_to(tmp_path / "precious"), "folder": path.mkdir}[what]()
    code, errors = recover(vramscope, spool)
    assert code in (0, 2) and (tmp_path / "precious").read_text() == "mine"


def mutations(draw, size):
    """One damaged spool: places in its header, the heads of its segments and its records get other bytes."""
    interesting = [0, 1, 2, 0x7F, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]
    places = []
    for _ in range(draw.choice((1, 2, 5, 40))):
        area = draw.randrange(3)
        offset = draw.randrange(0, 1024, 4) if area == 0 else \
            HEADER_BYTES + draw.randrange((size - HEADER_BYTES) // SEGMENT_BYTES) * SEGMENT_BYTES + draw.randrange(0, 64, 4) if area == 1 else \
            FIRST_RECORD + draw.randrange(0, 4 * SEGMENT_BYTES, 4)
        width = draw.choice((1, 2, 4, 8))
        value = draw.choice(interesting) if draw.random() < 0.5 else draw.getrandbits(64)
        places.append((min(offset, size - 8), (value & (1 << 8 * width) - 1).to_bytes(width, "little")))
    return places


def mutate(vramscope, spool, tmp_path, seed, count, run_measured):
    draw = random.Random(seed)
    whole = {path.name: path.read_bytes() for path in spool.iterdir() if path.is_file()}
    [name] = [name for name in whole if name.endswith(".spool")]
    for i in range(count):
        folder, out = tmp_path / f"spool{i}", tmp_path / f"out{i}"
        folder.mkdir(mode=0o700)
        out.mkdir()
        for each, data in whole.items():
            (folder / each).write_bytes(data)
        (folder / "run").symlink_to(out)
        places = mutations(draw, len(whole[name]))
        if draw.random() < 0.1:
            with open(folder / name, "r+b") as file:
                file.truncate(draw.randrange(len(whole[name])))
        else:
            patch(folder, places)
        if draw.random() < 0.3:
            for path in folder.glob("*.defs"):
                data = bytearray(path.read_bytes())
                for _ in range(min(len(data), 8)):
                    data[draw.randrange(len(data))] = draw.randrange(256)
                path.write_bytes(data)
        before = processor_seconds()
        most, code, _, errors = run_measured([vramscope, "recover", folder], cwd=out, timeout=GUARD_S)
        seconds = processor_seconds() - before
        assert code in (0, 2), (i, places, errors)
        assert seconds < SECONDS, (i, places, seconds)
        assert most < BUDGET, (i, places, most)
        for trace in out.glob("*.vram"):
            done = subprocess.run([vramscope, "dump", "--no-stacks", trace], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=GUARD_S)
            assert done.returncode in (0, 2) and len(done.stderr.splitlines()) <= 1, (i, places, done.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(out)


def test_mutated_spools(vramscope, spool, tmp_path, run_measured):
    mutate(vramscope, spool, tmp_path, 1, 25, run_measured)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_soak_of_mutated_spools(vramscope, spool, tmp_path, seed, run_measured):
    mutate(vramscope, spool, tmp_path, 100 + seed, 100, run_measured)


@pytest.mark.parametrize("owner", [None, pytest.param(NOBODY, marks=as_root)])
def test_top_does_not_wait_for_the_pipes_of_anybody(vramscope, owner):
    place = Path("/dev/shm") / f"vramscope-test{os.getpid()}"
    place.mkdir(mode=0o700)
    try:
        os.mkfifo(place / "1-0.spool")
        os.mkfifo(place / "1-0.lock")
        (place / MARKER).touch()
        if owner is not None:
            give_to(owner, place)
        done = run_as(None, [vramscope, "top", "--once", "--json"])
        assert done.returncode == 0, done.stderr
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("what", ["pipe", "link", "folder", "endless"])
def test_plans_of_xla_that_are_no_files(vramscope, producer, tmp_path, counters, what):
    """The folder came with the trace, from somebody else."""
    out = tmp_path / "out"
    script = 'd=${XLA_FLAGS#*--xla_dump_to=}; d=${d%% *}; echo > "$d/module_1.a-buffer-assignment.txt"; exec "$@"'
    subprocess.run([vramscope, "run", "-q", "--xla", "-o", out, "--", "sh", "-c", script, "sh", producer, counters.path, "1", "100"], check=True)
    [plan] = out.glob("xla-*/module_*")
    plan.unlink()
    (tmp_path / "secret").write_text("BufferAssignment:\nsecret\n")
    if what == "endless":
        with open(plan, "wb") as file:
            file.truncate(1 << 34)
    else:
        {"pipe": lambda: os.mkfifo(plan), "link": lambda: plan.symlink_to(tmp_path / "secret"), "folder": plan.mkdir}[what]()
    done = run_as(None, [vramscope, "xla", out])
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "secret" not in done.stderr + done.stdout, done.stderr
