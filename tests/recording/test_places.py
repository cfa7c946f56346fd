"""Disks that are full, read-only or small: the program continues, and one line says what is lost and what to do."""
import json
import re
import subprocess

import pytest

from recording_support import Trace, check_blocks


@pytest.fixture(scope="module")
def with_mounts():
    """with_mounts(script, ...) runs a shell script in a mount namespace of its own."""
    for prefix in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        if subprocess.run([*prefix, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0:
            break
    else:
        pytest.skip("no mount namespaces here: neither root nor unprivileged user namespaces")

    def call(script, *arguments):
        return subprocess.run([*prefix, "sh", "-ec", script, "sh", *map(str, arguments)], capture_output=True, text=True, timeout=600)

    return call


def one_line(text):
    lines = [line for line in text.splitlines() if line.startswith("vramscope:")]
    assert len(lines) == 1, text
    return lines[0]


def test_read_only_output(with_mounts, vramscope, tmp_path):
    done = with_mounts('mkdir "$2"; mount -t tmpfs -o ro none "$2"; "$1" run -o "$2/x" -- sh -c "echo fine; exit 5"', vramscope, tmp_path / "ro")
    assert (done.returncode, done.stdout) == (5, "fine\n")
    line = one_line(done.stderr)
    assert "not recording" in line and "-o" in line


def test_read_only_home(with_mounts, vramscope, tmp_path):
    done = with_mounts('mkdir "$2"; mount -t tmpfs -o ro none "$2"; cd "$2"; HOME="$2" "$1" run -- echo fine', vramscope, tmp_path / "home")
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert "not recording" in one_line(done.stderr)


def test_full_disk(with_mounts, vramscope, producer, counters, tmp_path):
    script = '''
        mkdir "$2" "$5"; mount -t tmpfs -o size=250k none "$2"
        "$1" run -q -o "$2" -- "$3" "$4" 4 100000 print
        cp "$2"/*.vram "$5"/ || true
    '''
    done = with_mounts(script, vramscope, tmp_path / "small", producer, counters.path, tmp_path / "copy")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("vramscope:")]
    assert lines and all("-o" in line or "cannot write" in line for line in lines), done.stderr
    assert 2 <= len(lines) <= 3, done.stderr  # the third: the manifest did not fit either
    assert re.search(r"process \d+: [\d,]+ events could not be written", lines[-1])
    path = next((tmp_path / "copy").glob("*.vram"))
    assert Trace(vramscope, path).kind("alloc"), "what was written before is readable"
    # There is room left for the end: the trace knows the totals, what it lacks, and how the process ended.
    answer = json.loads(subprocess.run([vramscope, "summary", "--json", path], capture_output=True, text=True).stdout)
    reported_lost = int(re.search(r"([\d,]+) events could not be written", lines[-1])[1].replace(",", ""))
    assert (answer["lost"], answer["process"]["exit_code"], answer["ended"]) == (reported_lost, 0, True)
    assert answer["pools"][0]["allocs"] == 400000


def test_a_disk_that_was_full_before(with_mounts, vramscope, producer, counters, tmp_path):
    script = '''
        mkdir "$2"; mount -t tmpfs -o size=64k none "$2"; head -c 100k /dev/zero > "$2/fill" 2> /dev/null || true
        "$1" run -q -o "$2" -- "$3" "$4" 1 2000 print
        ls "$2"
    '''
    done = with_mounts(script, vramscope, tmp_path / "full", producer, counters.path)
    assert done.stdout.startswith("done\n") and ".vram" not in done.stdout, done.stdout
    assert "cannot write" in done.stderr


def test_small_shared_memory(with_mounts, vramscope, producer, counters, tmp_path):
    script = 'mount -t tmpfs -o size=64m none /dev/shm; "$1" run -q -o "$2" -- "$3" "$4" 4 30000 pause=2000 print'
    done = with_mounts(script, vramscope, tmp_path / "out", producer, counters.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    check_blocks(Trace(vramscope, next((tmp_path / "out").glob("*.vram"))), counters.read(4))


def test_shared_memory_is_left_to_the_program(with_mounts, vramscope, producer, tmp_path):
    """Each process alone may take a quarter. The collector is stopped, so that each takes as much as it can."""
    script = '''
        mount -t tmpfs -o size=64m none /dev/shm
        "$1" run -q -o "$2" -- sh -c '
            kill -STOP $PPID
            for i in 1 2 3 4 5 6 7 8; do "$0" "$1/counters$i" 2 200000 & done
            wait
            df --output=avail -k /dev/shm | tail -1
            head -c 28M /dev/zero > /dev/shm/own && echo enough
            kill -CONT $PPID' "$3" "$4"
    '''
    done = with_mounts(script, vramscope, tmp_path / "out", producer, tmp_path)
    free_kb, said = done.stdout.split()
    assert done.returncode == 0 and said == "enough"
    assert 28 << 10 < int(free_kb) < 48 << 10, "spools take what they may, not more"
    assert len(list((tmp_path / "out").glob("*.vram"))) == 8


def test_no_room_in_shared_memory_takes_a_disk(with_mounts, vramscope, producer, counters, tmp_path):
    script = '''
        mount -t tmpfs -o size=1m none /dev/shm
        "$1" run -q -o "$2" -- sh -c 'echo $VRAMSCOPE_SPOOL; "$0" "$1" 2 20000' "$3" "$4"
    '''
    done = with_mounts(script, vramscope, tmp_path / "out", producer, counters.path)
    assert done.returncode == 0 and done.stderr == ""
    assert not done.stdout.startswith("/dev/shm")
    check_blocks(Trace(vramscope, next((tmp_path / "out").glob("*.vram"))), counters.read(2))


def test_without_proc(with_mounts, vramscope, tmp_path):
    done = with_mounts('umount -l /proc; "$1" run -o "$2" -- echo fine', vramscope, tmp_path / "out")
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert "/proc is not mounted" in one_line(done.stderr)


def test_no_place_at_all(with_mounts, vramscope, tmp_path):
    # The checkout may lie below one of these places: the program is moved out of their way first.
    script = '''
        mount --bind "$1" /mnt
        for place in /dev/shm /var/tmp /tmp; do mount -t tmpfs -o ro none $place; done
        cd /; TMPDIR= "/mnt/$2" run -o "$3" -- echo fine
    '''
    done = with_mounts(script, vramscope.parent, vramscope.name, tmp_path / "out")
    assert done.returncode == 0 and done.stdout == "fine\n"
    assert "TMPDIR" in one_line(done.stderr) or "-o" in one_line(done.stderr)


def test_doctor_speaks_of_a_small_shared_memory(with_mounts, vramscope):
    done = with_mounts('mount -t tmpfs -o size=1m none /dev/shm; "$1" doctor --json', vramscope)
    spool, = [each for each in json.loads(done.stdout)["findings"] if each["what"] == "spool"]
    assert "shm-size" in spool["remedy"]
