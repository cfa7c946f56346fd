"""Bad input: one clear line, exit code 2, never a crash, never an empty success."""
import json
import os
import random
import struct
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def trace(vramscope, producer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    subprocess.run([vramscope, "run", "-q", "-o", folder / "out", "--", producer, folder / "counters", "2", "3000"], check=True)
    return next((folder / "out").glob("*.vram"))


def refused(run, vramscope, *words):
    done = run([vramscope, *words], code=2)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("vramscope: "), done.stderr
    return lines[0]


VERBS = [("summary",), ("summary", "--json"), ("dump",), ("dump", "--jsonl")]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_what_is_no_trace(run, vramscope, tmp_path, verb):
    assert "no such file" in refused(run, vramscope, *verb, tmp_path / "absent")
    assert "no trace in this folder" in refused(run, vramscope, *verb, tmp_path)
    foreign = tmp_path / "foreign.vram"
    for content in (b"", b"x", b"\x7fELF" + bytes(4000), b"PK\x03\x04" * 100, random.Random(1).randbytes(5000)):
        foreign.write_bytes(content)
        assert str(foreign) in refused(run, vramscope, *verb, foreign)


def test_a_newer_version(run, vramscope, trace, tmp_path):
    data = bytearray(trace.read_bytes())
    newer = tmp_path / "newer.vram"
    found = False
    for offset in range(4, 16, 2):  # the major number is a 16-bit field of the file's head
        if struct.unpack_from("<H", data, offset)[0] == 1:
            struct.pack_into("<H", data, offset, 99)
            found = True
            break
    assert found
    newer.write_bytes(data)
    line = refused(run, vramscope, "summary", newer)
    assert "99" in line and "newer" in line


def test_usage(run, vramscope):
    for words in (["frobnicate"], ["summary"], ["summary", "--no-such-option", "x"], ["run", "--sample-hz", "-3", "--", "true"],
                  ["run", "--spool-limit", "12parsecs", "--", "true"], ["run", "--stacks", "all", "--", "true"], ["completion", "tcsh"],
                  ["recover", "/nonexistent"], ["run", "--quite", "--", "true"], ["run", "--spool-limit", "100TiB", "--", "true"]):
        refused(run, vramscope, *words)


def test_an_answer_that_cannot_be_written(vramscope, trace):
    for verb in (["summary"], ["summary", "--json"], ["peak"], ["dump"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([vramscope, *verb, trace], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
        assert done.returncode == 2 and done.stderr.startswith("vramscope: ") and done.stderr.count("\n") == 1, (verb, done.stderr)


def test_no_verb_shows_the_help_and_fails(run, vramscope):
    done = run([vramscope], code=2)
    assert "Usage" in done.stderr
    assert "Usage" in run([vramscope, "--help"]).stdout
    for verb in ("run", "summary", "dump", "recover", "doctor", "completion"):
        page = run([vramscope, verb, "--help"]).stdout
        assert "Examples:" in page and f"vramscope {verb}" in page or verb == "completion"
    assert run([vramscope, "--version"]).stdout.startswith("vramscope ")


def test_truncated_traces_show_what_is_there(run, vramscope, trace, tmp_path):
    data = trace.read_bytes()
    whole = json.loads(run([vramscope, "summary", "--json", trace]).stdout)["events"]
    cut = tmp_path / "cut.vram"
    shown = 0
    for share in (0.2, 0.5, 0.8, 0.99):
        cut.write_bytes(data[:int(len(data) * share)])
        done = subprocess.run([vramscope, "summary", "--json", cut], capture_output=True, text=True, timeout=600)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
        if done.stdout:
            answer = json.loads(done.stdout)
            assert answer["events"] <= whole and not answer["ended"] and answer["damage"]
            shown += 1
    assert shown > 0
    text = run([vramscope, "summary", cut], code=2).stdout
    assert "damage" in text and "none lost" not in text


@pytest.mark.parametrize("verb", ["summary", "dump"])
def test_a_trace_that_only_has_begun_is_no_empty_success(run, vramscope, trace, tmp_path, verb):
    (tmp_path / "begun.vram").write_bytes(trace.read_bytes()[:40])
    done = run([vramscope, verb, tmp_path / "begun.vram"], code=2)
    assert done.stdout == "" and "has no events" in done.stderr and len(done.stderr.splitlines()) == 1


def test_flipped_bits_never_crash(vramscope, trace, tmp_path):
    data = trace.read_bytes()
    draw = random.Random(4)
    path = tmp_path / "flipped.vram"
    for _ in range(60):
        bad = bytearray(data)
        for _ in range(draw.choice((1, 1, 3))):
            bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        path.write_bytes(bad)
        for verb in (["summary"], ["dump", "--jsonl"]):
            done = subprocess.run([vramscope, *verb, path], capture_output=True, timeout=600)
            assert done.returncode in (0, 2), done.stderr
            assert done.returncode == 0 or len(done.stderr.splitlines()) == 1, done.stderr


def test_a_folder_of_foreign_spools(run, vramscope, tmp_path):
    (tmp_path / "1-0.spool").write_bytes(b"nonsense" * 20000)
    (tmp_path / "2-0.spool").write_bytes(b"")
    done = run([vramscope, "recover", tmp_path], code=2)
    assert len(done.stderr.splitlines()) == 1 and "did not create this folder" in done.stderr
    (tmp_path / ".vramscope-folder").touch()
    tmp_path.chmod(0o700)
    done = run([vramscope, "recover", tmp_path], code=2)
    assert len(done.stderr.splitlines()) == 2


def test_a_budget_reveals_no_file_of_the_one_who_checks(run, vramscope, trace, tmp_path):
    """It may come with a pull request, and an error quotes the line it is about."""
    secret = tmp_path / "netrc"
    secret.write_text("machine example.org login me password hunter2\n")
    budget = tmp_path / "vram.toml"
    budget.symlink_to(secret)
    line = refused(run, vramscope, "check", trace, "--budget", budget)
    assert "hunter2" not in line and "link" in line


def test_a_budget_that_is_a_pipe(run, vramscope, trace, tmp_path):
    budget = tmp_path / "vram.toml"
    os.mkfifo(budget)
    done = run([vramscope, "check", trace, "--budget", budget], code=2, timeout=60)
    assert "cannot read" in done.stderr


def test_a_budget_from_a_stream(vramscope, trace):
    done = subprocess.run([vramscope, "check", trace, "--budget", "/dev/stdin"], input='peak = "1TiB"\n', capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_doctor_runs_nothing_from_the_folder_it_is_called_in(run, vramscope, tmp_path):
    """The folder may be an unpacked archive; `python -c` would look there first for what it imports."""
    for module in ("importlib", "csv", "email", "zipfile", "tempfile", "pathlib", "json", "textwrap", "tensorflow", "torch"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({module!r})\n")
    run([vramscope, "doctor", "--json", "--python", sys.executable], code=None, cwd=tmp_path)
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_doctor_prints_no_escapes_of_a_package(run, vramscope, inject, tmp_path):
    """The version is what a package's metadata says. Our own library stands in for PyTorch's: it has the names that are looked for."""
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    (tmp_path / "torch" / "lib" / "libc10.so").symlink_to(inject)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nprintf 'python\\t3.11\\033[2J\\t/usr/bin/python3\\033[31m\\n"
                      f"torch\\t2.1\\033]0;title\\007\\t{tmp_path}/torch\\n'\n")
    python.chmod(0o755)
    done = run([vramscope, "doctor", "--verbose", "--python", python], code=None)
    assert "PyTorch 2.1\\x1b]0;title\\x07 can be recorded" in done.stdout.splitlines()[0], done.stdout
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout
