"""Wrong use gets an exception that names the argument, whether or not anything is recorded, and leaves nothing half-started."""
import subprocess
import sys
import types

import pytest

import vramscope
from vramscope import attach, holders, notebook, tensorboard, trace


@pytest.mark.parametrize("thing", [None, True, "losses", b"x", 3.5, 1j, sys, int, len])
def test_who_holds_is_asked_about_tensors(thing):
    with pytest.raises(TypeError, match=r"who_holds\(.*a tensor, a variable or an address"):
        holders.who_holds(thing)


def test_who_holds_takes_addresses_and_objects():
    with pytest.raises(ValueError, match="greater than 0"):
        holders.who_holds(-1)
    assert str(holders.who_holds(3)) == "no Python object holds it"
    kept = [types.SimpleNamespace()]
    assert "kept[0]" in str(holders.who_holds(kept[0]))


@pytest.mark.parametrize("arguments,kind,name", [
    ({"sample_hz": "x"}, TypeError, "sample_hz"), ({"sample_hz": None}, TypeError, "sample_hz"), ({"sample_hz": -1}, ValueError, "sample_hz"),
    ({"sample_hz": float("nan")}, ValueError, "sample_hz"), ({"sample_hz": 1e9}, ValueError, "sample_hz"),
    ({"stacks": "all"}, ValueError, "stacks"), ({"stacks": []}, ValueError, "stacks"), ({"output": None}, TypeError, "output"),
    ({"output": ""}, ValueError, "output"), ({"output": "a\0b"}, ValueError, "output")])
def test_start_and_record_name_the_argument(arguments, kind, name):
    for begin in (attach.start, attach.record):
        with pytest.raises(kind, match=f"^{name}="):
            begin(**arguments)
    assert attach._collector is None
    with pytest.raises(RuntimeError, match="not recording"):
        attach.stop()


def test_start_and_the_program_accept_the_same(build):
    """start() checks its arguments before a process is started, so the limits exist on both sides."""
    def refused(*words):
        return subprocess.run([build / "vramscope", "run", *words, "--", "true"], capture_output=True, text=True).stderr

    assert f"from 0 to {attach._MOST_HZ}\n" in refused("--sample-hz", str(attach._MOST_HZ + 1))
    assert f"expected {', '.join(attach._STACKS)};" in refused("--stacks", "all")


@pytest.mark.parametrize("call,kind,said", [
    (lambda: vramscope.step("x"), TypeError, "number='x'"), (lambda: vramscope.step(1 << 70), ValueError, "number="),
    (lambda: vramscope.mark("a", 2.5), TypeError, "number=2.5"), (lambda: vramscope.scope("a", "b"), TypeError, "number='b'"),
    (lambda: vramscope.tag(None, "a"), TypeError, "NoneType has no address"), (lambda: vramscope.tag(-5, "a"), ValueError, "address=-5"),
    (lambda: vramscope.tag(True, "a"), TypeError, "bool has no address"), (lambda: vramscope.tag(4096, "a", bytes="x"), TypeError, "bytes='x'"),
    (lambda: vramscope.tag(4096, "a", category=[]), ValueError, "unknown category"), (lambda: vramscope.reset_peak(None), ValueError, "unknown device"),
    (lambda: notebook.live("toaster"), ValueError, "unknown device"), (lambda: notebook.live(every=0), ValueError, "every=0"),
    (lambda: trace.open("/nowhere/at/all"), FileNotFoundError, "no such file")])
def test_every_function_says_what_is_wrong(call, kind, said):
    with pytest.raises(kind, match=said):
        call()


def test_labels_and_numbers_of_other_kinds_are_taken():
    numpy = pytest.importorskip("numpy")
    vramscope.step(numpy.int64(3))
    vramscope.mark(None, True, detail=3)
    vramscope.tag(4096, 7, bytes=numpy.int32(16))


def test_a_file_that_is_no_trace_has_no_events(tmp_path, build):
    (tmp_path / "notes.vram").write_text("nothing of the kind")
    with pytest.raises(ValueError, match="not a vramscope trace"):
        list(trace.open(tmp_path / "notes.vram").events())


def test_tensorboard_steps_are_integers(tmp_path):
    with tensorboard.Writer(tmp_path) as writer, pytest.raises(TypeError, match="integer"):
        writer.add({"a": 1.0}, 1.5)
