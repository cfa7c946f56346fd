"""Profiles made by their real producers, or by a faithful model of them, have the producer's own figures after import."""
import gzip
import json
import os
import pickle
import random
import subprocess

import pprof_reader
import pytest
import torch_allocator
from format_cases import CASES, PROGRAMS
from verbs import OF_ONE_TRACE


def place(answer, trace, name):
    return next(p for p in answer("summary", trace)["overview"]["places"] if p["name"] == name)


def figures(answer, trace, name="GPU 0"):
    at = place(answer, trace, name)
    return at["peak"], at["end"], at["allocs"]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", [1, 2])
def test_torch_snapshot(imported, answer, tmp_path, protocol, seed):
    """What the allocator's own statistics say, to the byte: granted sizes are not in the trace of a snapshot."""
    model = torch_allocator.run(seed=seed)
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps(model.snapshot(), protocol=protocol))
    trace = imported(file)
    assert figures(answer, trace) == (model.peak, model.allocated, sum(e["action"] == "alloc" for e in model.trace))
    assert place(answer, trace, "GPU 0")["regions_peak"] == model.reserved
    pool = answer("summary", trace)["pools"][0]
    assert pool["peak_requested_bytes"] == model.requested_peak
    lines = {group["keys"][0] for group in answer("peak", trace, "--at", "peak", "--by", "line", "-n", "0")["groups"]}
    assert any(line.startswith("model_") for line in lines)


@pytest.mark.parametrize("seed", [1, 2])
def test_replay_of_a_snapshot_whose_program_emptied_its_cache(imported, answer, tmp_path, seed):
    """The same segments are taken and returned in the same order; a snapshot does not say that the cache was emptied."""
    model = torch_allocator.run(seed=seed, empties=5)
    assert sum(entry["action"] == "segment_free" for entry in model.trace) > 5
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(model.snapshot()))
    said = answer("whatif", imported(tmp_path / "snapshot.pickle"))
    assert said["exact"] and said["recorded"] == said["rows"][0]["reserved"] == model.reserved_peak
    assert any("emptied the cache" in line for line in said["assumptions"]) and not any("neither streams" in line for line in said["assumptions"])


def test_torch_snapshot_whose_ring_wrapped(imported, answer, tmp_path):
    """The first events are missing: blocks of before are live from the start, and the end is exact."""
    model = torch_allocator.run(2000)
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps(model.snapshot(500)))
    trace = imported(file)
    assert figures(answer, trace)[1] == model.allocated
    said = answer("summary", trace)["settings"]
    assert "before its history began" in said["source.lacks"]


def test_torch_snapshots_of_old_versions(imported, answer, tmp_path):
    """Up to 1.12 a list of segments whose blocks have no address; 2.0 has no times."""
    model = torch_allocator.run(300)
    snapshot = model.snapshot()
    old = [{**segment, "blocks": [{"size": b["size"], "state": b["state"]} for b in segment["blocks"]]} for segment in snapshot["segments"]]
    without_time = {"segments": snapshot["segments"],
                    "device_traces": [[{k: v for k, v in e.items() if k != "time_us"} for e in snapshot["device_traces"][0]]]}
    (tmp_path / "list").write_bytes(pickle.dumps(old, protocol=2))
    (tmp_path / "2.0").write_bytes(pickle.dumps(without_time))
    assert figures(answer, imported(tmp_path / "list"))[1] == model.allocated
    assert figures(answer, imported(tmp_path / "2.0"))[:2] == (model.peak, model.allocated)


class Hostile:
    def __reduce__(self):
        return os.system, ("touch hostile-ran",)


def test_code_in_a_pickle_is_refused(vramscope, run, tmp_path):
    for protocol in (2, 4):
        file = tmp_path / f"{protocol}.pickle"
        file.write_bytes(pickle.dumps({"segments": [], "device_traces": [[Hostile()]]}, protocol=protocol))
        done = run([vramscope, "import", file, "-o", tmp_path / "x.vram"], code=2, cwd=tmp_path)
        assert "never run" in done.stderr and done.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["2.pickle", "4.pickle"]


def test_memory_of_an_import_is_bounded(run_measured, vramscope, tmp_path):
    """A snapshot of tens of MB takes less than twice its size, besides what any import takes. As in PyTorch, each entry has a list of its own, of shared frames."""
    model = torch_allocator.run(40_000, seed=3)
    snapshot = model.snapshot()
    frames = [{"name": f"f{i}", "filename": f"module_{i % 97}.py", "line": i} for i in range(500)]
    draw = random.Random(1)
    stacks = [[draw.choice(frames) for _ in range(30)] for _ in range(1000)]
    snapshot["device_traces"][0] = [{**entry, "frames": list(draw.choice(stacks)), "forward_frames": ["forward"] * 10}
                                    for _ in range(3) for entry in snapshot["device_traces"][0]]
    file = tmp_path / "large.pickle"
    file.write_bytes(pickle.dumps(snapshot))
    small = tmp_path / "small.pickle"
    small.write_bytes(pickle.dumps(torch_allocator.run(100).snapshot()))
    base = run_measured([vramscope, "import", small, "-o", tmp_path / "small.vram"])
    most = run_measured([vramscope, "import", file, "-o", tmp_path / "large.vram"])
    assert base[1] == 0 and most[1] == 0, most[3]
    assert most[0] - base[0] < 2 * file.stat().st_size


def test_hostile_lists_of_frames(vramscope, run, answer, tmp_path):
    """Lists that contain themselves or the entry that they belong to, that grow after they were read, or that are the trace itself."""
    def entry(frames, address=4096):
        return {"action": "alloc", "addr": address, "size": 512, "stream": 0, "time_us": 5, "frames": frames}
    own = []
    own.append(own)
    around = entry([])
    around["frames"].append(around)
    itself = entry(None)
    itself["frames"] = itself
    trace = [entry([])]
    trace.append(entry(trace, 8192))
    block = {"size": 512, "state": "active_allocated", "frames": own}
    segment = {"device": 0, "address": 1 << 20, "total_size": 1024, "blocks": [block, block]}
    for i, one in enumerate([{"segments": [], "device_traces": [[entry(own)]]}, {"segments": [], "device_traces": [[around]]},
                             {"segments": [], "device_traces": [[itself]]}, {"segments": [], "device_traces": [trace]},
                             {"segments": [segment], "device_traces": [[]]}]):
        for protocol in (2, 4):
            file = tmp_path / f"{i}.{protocol}.pickle"
            file.write_bytes(pickle.dumps(one, protocol=protocol))
            done = run([vramscope, "summary", file, "--json"], code=None)
            assert done.returncode in (0, 2) and (done.returncode == 0 or done.stderr.count("\n") == 1), (i, done)


def test_long_texts_and_numbers_in_a_pickle(imported, answer, tmp_path):
    """Longer than what is read at once; around the ends of the pieces in which texts are kept."""
    names = ["x" * length for length in (0, 1, 255, 256, (1 << 20) - 1, 1 << 20, 3 << 20)] * 2
    trace = [{"action": "alloc", "addr": 4096 * (i + 1), "size": 512, "stream": 0, "time_us": i + 1, "user_metadata": name,
              "frames": [{"name": f"f{i}", "filename": f"{i}.py", "line": 1 << 70 if i == 3 else i + 1}]} for i, name in enumerate(names)]
    file = tmp_path / "long.pickle"
    file.write_bytes(pickle.dumps({"segments": [], "device_traces": [trace]}))
    groups = answer("peak", imported(file), "--at", "peak", "--by", "line", "-n", "0")["groups"]
    assert {group["keys"][0] for group in groups} >= {f"{i}.py:{i + 1}" for i in range(len(names)) if i != 3}


def test_xplane(tensorflow_files, imported, answer):
    folder, truth = tensorflow_files
    trace = imported(next(folder.glob("**/*.xplane.pb")))
    peak, end, _ = figures(answer, trace, "host")
    assert (peak, end) == (truth["profile"]["peak"], truth["profile"]["end"])
    events = answer("peak", trace, "--at", "peak", "--by", "op", "-n", "0")["groups"]
    assert any("MatMul" in group["keys"][0] for group in events)


def test_bfc_dump(tensorflow_files, imported, answer):
    folder, truth = tensorflow_files
    trace = imported(sorted(folder.glob("dump*"))[-1])
    assert figures(answer, trace, "host")[1] == truth["dump"]["in_use"]
    assert place(answer, trace, "host")["regions_end"] == truth["dump"]["pool"]


def test_tensorflow_log(tensorflow_files, imported, answer):
    folder, truth = tensorflow_files
    trace = imported(folder / "log.txt")
    assert figures(answer, trace, "host")[1] == truth["dump"]["in_use"]
    event = answer("oom", trace)["events"][0]
    assert (event["requested"], event["limit"], event["op"]) == (truth["failed"]["bytes"], 64 << 20, "AddV2")


def test_kineto(torch_python, imported, answer, export, tmp_path):
    """torch.profiler on the CPU; the totals and the instant of the peak are those of its own list of events."""
    file = tmp_path / "trace.json"
    done = subprocess.run([torch_python, os.path.join(PROGRAMS, "torch_profile.py"), file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    truth = json.loads(done.stdout.splitlines()[-1])
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for each in (file, packed):
        trace = imported(each)
        assert figures(answer, trace, "host") == (truth["peak"], truth["end"], truth["allocs"])
        assert abs(pprof_reader.read(export(trace, "pprof")).time_nanos - truth["peak_ns"]) < 2000


def test_start_of_a_chrome_trace(imported, export, tmp_path):
    """Up to PyTorch 2.1 times count from 1970, since then from an instant that is written before or after the events."""
    event = '{"ph": "i", "name": "[memory]", "ts": %s, "args": {"Bytes": 8, "Addr": 4096, "Device Type": 0, "Device Id": -1}}'
    base = '"baseTimeNanoseconds": 1700000000000000000'
    for name, text in {"old": '{"traceEvents": [%s]}' % event % "1700000000123456.5", "before": '{%s, "traceEvents": [%s]}' % (base, event % "123456.789"),
                       "after": '{"traceEvents": [\n%s\n],\n%s}' % (event % "123456.789", base)}.items():
        (tmp_path / name).write_text(text)
        assert pprof_reader.read(export(imported(tmp_path / name), "pprof")).time_nanos == 1_700_000_000_123_456_000, name


def test_rmm(imported, answer, tmp_path):
    rows, live, most, blocks = [], 0, 0, {}
    draw = random.Random(3)
    for i in range(500):
        second = (23 * 3600 + 57 * 60 + i) % (24 * 3600)        # over midnight
        time = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{i:06}"
        if blocks and draw.random() < 0.5:
            address = draw.choice(list(blocks))
            live -= blocks[address]
            rows.append(f"7,{time},free,{address:#x},{blocks.pop(address)},0x0")
        else:
            address, size = 0x7F0000000000 + i * 1024, draw.randrange(1, 1000)
            blocks[address] = size
            live += size
            rows.append(f"7,{time},allocate,{address:#x},{size},0x0")
        most = max(most, live)
    rows.append("7,00:20:00.000000,allocate failure,(nil),5000,0x0")
    file = tmp_path / "rmm.csv"
    file.write_text("Thread,Time,Action,Pointer,Size,Stream\n" + "\n".join(rows) + "\n")
    trace = imported(file)
    assert figures(answer, trace)[:2] == (most, live)
    assert [event["requested"] for event in answer("oom", trace)["events"]] == [5000]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("to, options", [("torch-snapshot", []), ("chrome", ["--full"]), ("pprof", []), ("xplane", [])])
def test_export_and_import(made, export, imported, answer, case, to, options):
    """What a format keeps survives the way out and back."""
    trace, truth = made(case)
    again = imported(export(trace, to, *options))
    peak, end, allocs = figures(answer, again)
    if to == "pprof":  # one instant
        assert peak == end == truth["peak"]
    else:
        assert (peak, end, allocs) == (truth["peak"], truth["end"], truth["allocs"])
        assert pprof_reader.read(export(again, "pprof")).time_nanos == pprof_reader.read(export(trace, "pprof")).time_nanos


def varint(number):
    return bytes(number >> shift & 0x7F | (0x80 if number >> shift + 7 else 0) for shift in range(0, max(1, number.bit_length()), 7))


def test_an_xplane_keeps_its_microseconds(made, export, imported, answer, tmp_path):
    """This instant in nanoseconds has no double of its own, and the nearest one is earlier."""
    trace, _ = made("leak")
    start, instant = answer("summary", trace)["overview"]["start_realtime_us"], 1_795_107_071_301_200
    assert float(instant * 1000) < instant * 1000
    exported = export(trace, "xplane").read_bytes()
    assert exported.count(varint(start * 1000)) == 1
    (tmp_path / "then.xplane.pb").write_bytes(exported.replace(varint(start * 1000), varint(instant * 1000)))
    again = imported(tmp_path / "then.xplane.pb")
    peaks = [pprof_reader.read(export(each, "pprof")).time_nanos for each in (trace, again)]
    assert peaks[1] - instant * 1000 == peaks[0] - start * 1000


def test_failed_requests_survive_export_and_import(made, export, imported, answer):
    trace, _ = made("killed")
    (failed,) = answer("oom", trace)["events"]
    exported = export(trace, "torch-snapshot")
    (entry,) = [entry for entry in pickle.loads(exported.read_bytes())["device_traces"][0] if entry["action"] == "oom"]
    assert entry["size"] == failed["requested"] and entry["frames"][0]["name"] == failed["op"]
    (again,) = answer("oom", imported(exported))["events"]
    assert [again[key] for key in ("requested", "live", "free", "largest_free")] == [failed[key] for key in ("requested", "live", "free", "largest_free")]


def test_every_verb_opens_a_profile_directly(vramscope, run, tmp_path):
    model = torch_allocator.run()
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps(model.snapshot()))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for verb in OF_ONE_TRACE:
        done = run([vramscope, verb, file, "--json"], env={**os.environ, "TMPDIR": str(scratch)})
        assert json.loads(done.stdout)
        assert "does not contain: steps" in done.stderr
    run([vramscope, "report", file, "-o", tmp_path / "report.html"], env={**os.environ, "TMPDIR": str(scratch)})
    run([vramscope, "diff", file, file], env={**os.environ, "TMPDIR": str(scratch)})
    assert not list(scratch.iterdir()) and sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "scratch", "snapshot.pickle"]


def test_a_profile_is_compared_with_a_run_folder(vramscope, build, run, tmp_path):
    folder, profile = tmp_path / "today", tmp_path / "snapshot.pickle"
    folder.mkdir()
    run([build / "tracegen", "clean", folder / "node-100-1.vram"])
    profile.write_bytes(pickle.dumps(torch_allocator.run(100).snapshot()))
    for sides in ((folder, profile), (profile, folder)):
        assert "snapshot.pickle" in run([vramscope, "diff", *sides]).stdout


def test_damaged_profiles(vramscope, run, tensorflow_files, tmp_path):
    """Cut off or changed anywhere: one line or a trace, never a crash, and nothing is left behind."""
    folder, _ = tensorflow_files
    model = torch_allocator.run(60)
    files = {"pickle": pickle.dumps(model.snapshot()), "xplane": next(folder.glob("**/*.xplane.pb")).read_bytes(),
             "dump": sorted(folder.glob("dump*"))[-1].read_bytes()}
    draw = random.Random(5)
    for name, content in files.items():
        for i in range(25):
            data = bytearray(content[:draw.randrange(len(content))] if i % 2 else content)
            for _ in range(i % 5):
                data[draw.randrange(len(data))] = draw.randrange(256) if data else 0
            file, trace = tmp_path / f"{name}{i}", tmp_path / "out.vram"
            file.write_bytes(data)
            done = run([vramscope, "import", file, "-o", trace], code=None)
            assert done.returncode in (0, 2), (name, i, done)
            assert done.returncode == 0 or (done.stderr.count("\n") == 1 and not trace.exists()), (name, i, done.stderr)
            trace.unlink(missing_ok=True)
            file.unlink()
    assert not list(tmp_path.iterdir())


def test_errors_are_one_line(vramscope, build, run, tmp_path):
    for name, content in {"empty": b"", "text": b"hello\n", "json": b'{"a": 1}', "gzip": gzip.compress(b"x"), "bomb": gzip.compress(b"\0" * (64 << 20))}.items():
        (tmp_path / name).write_bytes(content)
        done = run([vramscope, "import", tmp_path / name, "-o", tmp_path / "x.vram"], code=2)
        assert done.stderr.count("\n") == 1 and name in done.stderr, done.stderr
    # A verb that opens it directly says the same.
    xplane = tmp_path / "cut.pb"
    xplane.write_bytes(b"\x0a\x40\x12\x10/host:CPU")
    assert run([vramscope, "peak", xplane], code=2).stderr == run([vramscope, "import", xplane, "-o", tmp_path / "x.vram"], code=2).stderr
    for other in ({"a": 1}, [1, 2], [{"a": []}], "text", {"state": "x"}):
        (tmp_path / "other.pickle").write_bytes(pickle.dumps(other))
        done = run([vramscope, "import", tmp_path / "other.pickle", "-o", tmp_path / "x.vram"], code=2)
        assert "a pickle, but not a memory snapshot of PyTorch" in done.stderr and done.stderr.count("\n") == 1
    run([build / "tracegen", "clean", tmp_path / "ours"])
    for name, part in {"empty": "the file is empty", "ours": "a trace of vramscope already"}.items():
        assert part in run([vramscope, "import", tmp_path / name, "-o", tmp_path / "x.vram"], code=2).stderr
    assert "cannot be written to the standard output" in run([vramscope, "import", tmp_path / "text", "-o", "-"], code=2, cwd=tmp_path).stderr
    assert not (tmp_path / "-").exists() and not (tmp_path / "x.vram").exists()
    there = tmp_path / "there.vram"
    there.write_text("mine")
    done = run([vramscope, "import", tmp_path / "text", "-o", there], code=2)
    assert "exists already" in done.stderr and there.read_text() == "mine"


JAX = """
import sys
import jax
import jax.numpy as jnp
kept = [jnp.ones((256, 256)) + i for i in range(5)] + [jnp.zeros((1024,))]
jax.block_until_ready(kept)
jax.profiler.save_device_memory_profile(sys.argv[1])
print(len(jax.live_arrays()), sum(array.nbytes for array in jax.live_arrays()))
"""


def test_jax(jax_python, imported, answer, tmp_path):
    """A device memory profile of JAX on the CPU, against its own list of live arrays."""
    file = tmp_path / "memory.prof"
    done = subprocess.run([jax_python, "-c", JAX, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    blocks, live = map(int, done.stdout.split())
    assert figures(answer, imported(file), "host") == (live, live, blocks)


def test_profiles_with_the_same_name(vramscope, run, tmp_path):
    """Of two folders; and a name as long as the file system allows."""
    log = "Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.000001,allocate,0x1000,{},0x0\n"
    files = [tmp_path / "a/log.csv", tmp_path / "b/log.csv", tmp_path / ("c" * 251 + ".csv")]
    for size, file in enumerate(files, 1):
        file.parent.mkdir(exist_ok=True)
        file.write_text(log.format(size << 20))
    for other in files[1:]:
        run([vramscope, "diff", files[0], other])
    assert json.loads(run([vramscope, "summary", files[2], "--json"]).stdout)["overview"]["places"][0]["peak"] == 3 << 20
