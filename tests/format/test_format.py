"""The specification of the trace format: a reader that was written from it and the program's own agree on every event."""
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import vram_reader

HERE = Path(__file__).resolve().parent
TRACES = HERE.parent / "traces"


@pytest.fixture(scope="module")
def schema(root):
    return json.loads((root / "schema/trace/schema.json").read_text())


class Resolver:
    """Turns ids into what `vramscope dump --jsonl` prints."""

    def __init__(self, trace, schema):
        self.d = trace.dictionaries
        self.words = {name: {v: k for k, v in values.items()} for name, values in schema["enums"].items()}
        self.fields = {e["name"]: {f["name"]: f["type"] for f in e["fields"]} for e in schema["events"]}
        self.blocks = {}  # position of an alloc event: (address, granted, pool)
        self.births = trace.births

    def text(self, string):
        return self.d["string"][string].decode(errors="replace")

    def pool(self, pool):
        entry = self.d["pool"][pool]
        return {"pool": self.text(entry["name"]), "device": entry["device"], "level": self.words["Level"][entry["level"]]}

    def site(self, site):
        entry = self.d["site"][site]
        stack = self.d["stack"][entry["stack"]]
        frames = [self.frame(self.d["frame"][frame]) for frame in stack["frames"]]
        if stack["cut"]:
            frames.append(f"({stack['cut']} more frames)")
        return {**self.pool(entry["pool"]), "requested": number(entry["requested"]),
                **{name: self.text(entry[name]) for name in ("op", "region", "shape", "owner")},
                **{name: number(entry[name]) for name in ("dtype", "stream", "flags")},
                "stack": frames}

    def frame(self, frame):
        where = f"+{frame['offset']:#x}" if frame["offset"] else f":{frame['line']}"
        return f"{self.text(frame['function'])} {self.text(frame['file'])}{where}"

    def line(self, event):
        out = {"event": event["event"], "seq": event["seq"], "time_us": event["time_us"], "thread": self.tid(event["thread"])}
        if event["event"] == "alloc":
            self.blocks[event["ordinal"]] = event
            return out | {k: event[k] for k in ("ordinal", "step")} | {k: number(event[k]) for k in ("address", "granted")} | self.site(event["site"])
        if event["event"] == "free":
            return out | self.free(event)
        for name, kind in self.fields[event["event"]].items():
            out |= self.field(name, kind, event[name])
        return out

    def free(self, event):
        ordinal = self.births.get(event["alloc"])
        if ordinal is None:
            pool = self.pool(event["pool"]) if event["pool"] is not None else {}
            return {"alloc": None, "address": number(event["address"]), "stream": number(event["stream"]), **pool}
        block = self.blocks.pop(ordinal)
        return {"alloc": ordinal, "address": block["address"], "granted": block["granted"], "stream": number(event["stream"]),
                **self.pool(self.d["site"][block["site"]]["pool"])}

    def field(self, name, kind, value):
        if kind == "string":
            return {name: self.text(value)}
        if kind == "pool":
            return self.pool(value)
        if kind == "site":
            return self.site(value)
        if kind in self.words:
            return {name: self.words[kind].get(value, "?")}
        return {name: value if kind in ("bool", "i64") else number(value)}

    def tid(self, thread):
        return self.d["thread"][thread]["tid"] if thread < len(self.d["thread"]) else 0


def number(value):
    return None if value == vram_reader.NONE else value


def dump(vramscope, path):
    done = subprocess.run([vramscope, "dump", "--jsonl", path], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(vramscope, schema, path):
    trace = vram_reader.Trace(path.read_bytes(), schema)
    resolver = Resolver(trace, schema)
    ours = dump(vramscope, path)
    theirs = [resolver.line(event) for event in trace.events]
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        assert mine == other
    return trace


@pytest.mark.parametrize("name", ["v1.0.vram", "v1.0-thinned.vram", "v1.0-anonymous.vram", "v1.1.vram", "v1.2.vram", "v1.3.vram"])
def test_two_readers_agree_on_a_committed_trace(vramscope, schema, name):
    trace = compare(vramscope, schema, TRACES / name)
    assert trace.complete
    version = name[1:4]
    wanted = {event["name"] for event in schema["events"] if version >= event.get("since", "1.2" if event.get("reported") else "1.0")}
    assert {event["event"] for event in trace.events} >= wanted - ({"omitted"} if "thinned" not in name else set())


def old_reports(trace, text):
    """What the settings of a trace before 1.2 report, in the words of today."""
    for event in trace.events:
        if event["event"] != "setting":
            continue
        key, value = text(event["key"]), text(event["value"])
        kind, _, rest = key.partition(".")
        if kind == "gradient_op":
            yield {"event": "variable_op", "op": rest, "role": "gradient", "category": "gradient", "variable": value}
        elif kind in ("variable_op", "variable_value"):
            category, _, variable = value.partition(" ")
            yield {"event": "variable_op", "op": rest, "role": "storage" if kind == "variable_op" else "value", "category": category,
                   "variable": variable}
        elif kind == "fact":
            fact = json.loads(value)
            if "per_step" in fact:
                fact["per_1000_steps"] = round(1000 * fact.pop("per_step"))
            yield {"event": {"float64": "float64_variable"}.get(rest.split(".")[0], rest.split(".")[0]), **fact}


def test_reports_of_an_old_trace_are_read_as_events(vramscope, schema):
    path = TRACES / "v1.1-reports.vram"
    trace = vram_reader.Trace(path.read_bytes(), schema)
    resolver = Resolver(trace, schema)
    expected = list(old_reports(trace, resolver.text))
    kinds = {report["event"] for report in expected}
    assert kinds == {"variable_op", "held_tensors", "persistent_tape", "retrace", "baked_constant", "float64_variable", "dataset_on_device", "cached_dataset"}
    assert any(report.get("file", "").endswith("/Größe.py") for report in expected)
    events = dump(vramscope, path)
    reports = [event for event in events if event["event"] in kinds]
    for report in reports:
        for name in ("seq", "time_us", "thread"):
            del report[name]
    assert reports == expected
    # Everything else is as it was, but for stacks that were cut: they ended in a frame of words.
    cut = [event["stack"][-1] for event in events if event["event"] == "alloc" and event["stack"] and "more frames" in event["stack"][-1]]
    assert cut and all(re.fullmatch(r"\(\d+ more frames\)", words) for words in cut)
    assert len(events) == len(trace.events)


def test_source_lines(schema):
    names = vram_reader.Trace((TRACES / "v1.1.vram").read_bytes(), schema).dictionaries
    text = lambda string: names["string"][string].decode()
    assert [text(file["file"]) for file in names["source_file"]] == ["model.py"]
    lines = {line["line"]: text(line["text"]) for line in names["source_line"]}
    assert lines[17] == "    x = dense_0(x)" and len(lines) == len(names["source_line"])
    assert not vram_reader.Trace((TRACES / "v1.0.vram").read_bytes(), schema).dictionaries["source_line"]


def test_two_readers_agree_on_a_generated_recording(vramscope, build, schema, tmp_path):
    path = tmp_path / "training.vram"
    subprocess.run([build / "bench/micro/trace_codec", path, "100000"], check=True, stdout=subprocess.DEVNULL)
    assert len(compare(vramscope, schema, path).events) >= 100_000


def test_two_readers_agree_on_addresses_that_are_handed_on(vramscope, build, schema, tmp_path):
    path = tmp_path / "handed_on.vram"
    subprocess.run([build / "tracegen", "handed_on", path], check=True, stdout=subprocess.DEVNULL)
    compare(vramscope, schema, path)
    chunks = [block for block in vram_reader.blocks(path.read_bytes()) if block.type == 2]
    assert any(table.columns[2].transform == 9 for chunk in chunks for table in vram_reader.tables(chunk.payload) if table.id == 1)


def test_both_readers_stop_at_the_same_place_in_a_cut_file(vramscope, schema, tmp_path):
    whole = (TRACES / "v1.0.vram").read_bytes()
    blocks = list(vram_reader.blocks(whole))
    # Before the first event there is nothing to show: that is refused (tests/recording).
    places = [block.offset for i, block in enumerate(blocks) if any(before.events for before in blocks[:i])]
    assert len(places) > 2
    for place in places:
        path = tmp_path / "cut.vram"
        path.write_bytes(whole[:place])
        compare(vramscope, schema, path)


def test_the_worked_example_of_the_specification(vramscope, root, schema, tmp_path):
    text = (root / "docs/format/vram-1.md").read_text().split("## 8. Worked example")[1]
    lines = re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", text, re.MULTILINE)
    path = tmp_path / "worked.vram"
    path.write_bytes(b"".join(bytes.fromhex(line) for line in lines))
    compare(vramscope, schema, path)
    events = dump(vramscope, path)
    assert [event["event"] for event in events] == ["alloc", "alloc", "free"]
    assert [event["granted"] for event in events] == [1024, 1024, 1024]
    assert [event["address"] for event in events] == [0x7F0000000000, 0x7F0000000400, 0x7F0000000000]


@pytest.mark.parametrize("name, says", [
    ("empty.vram", "the file is empty"),
    ("foreign.vram", "not a vramscope trace"),
    ("newer-major.vram", "uses trace format 2.0, but this vramscope reads only up to 1."),
    ("bad-header.vram", "header is damaged"),
    ("bad-names.vram", "the names at byte"),
    ("bad-chunk.vram", "cannot be read: its checksum does not match"),
])
def test_a_damaged_trace_is_one_line_and_exit_code_2(vramscope, name, says):
    done = subprocess.run([vramscope, "dump", "--jsonl", TRACES / "damaged" / name], capture_output=True, text=True)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    for line in done.stdout.splitlines():
        json.loads(line)


def test_a_recording_that_was_cut_off_is_shown_with_a_remark(vramscope):
    done = subprocess.run([vramscope, "dump", "--jsonl", TRACES / "damaged/cut-in-block.vram"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "the last 89 bytes are an unfinished block and were left out" in done.stderr
    assert len(done.stdout.splitlines()) > 1000


def test_a_minor_version_that_is_newer_is_read(vramscope):
    done = subprocess.run([vramscope, "dump", "--jsonl", TRACES / "newer-minor.vram"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == dump_lines(vramscope, TRACES / "v1.0.vram")


def dump_lines(vramscope, path):
    return subprocess.run([vramscope, "dump", "--jsonl", path], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_program_reads_a_trace_that_still_grows(vramscope, tmp_path):
    whole = (TRACES / "v1.0.vram").read_bytes()
    path = tmp_path / "growing.vram"
    seen = 0
    for length in range(40, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:length])
        done = subprocess.run([vramscope, "dump", "--jsonl", path], capture_output=True, text=True)
        assert done.returncode in (0, 2)
        events = len(done.stdout.splitlines())
        assert events >= seen
        seen = events
    shutil.copy(TRACES / "v1.0.vram", path)
    assert len(dump_lines(vramscope, path)) >= seen
