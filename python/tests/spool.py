"""Reads a spool as src/spool/layout.h describes it: a second reader, so that tests see what was recorded without the collector."""
import json
import struct
from collections import namedtuple
from pathlib import Path

from vramscope._schema import REPORT_NUMBERS, REPORT_TEXTS

HEADER = SEGMENT = 64 * 1024
SLOT = 32
KINDS = {1: "alloc", 2: "free", 4: "mark", 5: "tag", 8: "setting", 11: "report", 32: "string", 36: "op_source"}
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "schema/trace/schema.json").read_text())
MARKS, CATEGORIES = ({number: word for word, number in SCHEMA["enums"][name].items()} for name in ("MarkKind", "Category"))
REPORTED = {event["id"]: event for event in SCHEMA["events"] if event.get("reported")}

Alloc = namedtuple("Alloc", "seq pool address requested granted op")
Free = namedtuple("Free", "seq pool address")
Mark = namedtuple("Mark", "seq kind edge name number detail")
Tag = namedtuple("Tag", "seq category address bytes name layer")
Setting = namedtuple("Setting", "seq key value")
Report = namedtuple("Report", "seq event fields")
OpSource = namedtuple("OpSource", "op file line function layer")


class Records(list):
    """All records in order."""

    def of(self, kind):
        return [record for record in self if isinstance(record, kind)]

    @property
    def marks(self):
        return self.of(Mark)

    def marks_of(self, kind):
        return [mark for mark in self.marks if mark.kind == kind]

    @property
    def tags(self):
        return self.of(Tag)

    @property
    def settings(self):
        return {record.key: record.value for record in self.of(Setting)}

    @property
    def reports(self):
        return self.of(Report)

    def reports_of(self, event):
        return [report.fields for report in self.reports if report.event == event]

    @property
    def op_sources(self):
        return {record.op: record for record in self.of(OpSource)}


def read(path):
    data = path.read_bytes()
    strings, raw = {0: ""}, []
    for segment in range(HEADER, len(data), SEGMENT):
        committed = struct.unpack_from("<4xI", data, segment)[0]
        at = 64
        while at < committed:
            head = struct.unpack_from("<QQBBHBBH", data, segment + at)
            seq, _, kind, flags, slots, pool, _, small = head
            body = segment + at + 24
            if KINDS.get(kind) == "string":
                identity, size = struct.unpack_from("<II", data, body)
                strings[identity] = data[body + 8:body + 8 + size].decode()
            raw.append((seq, kind, flags, pool, small, body))
            at += slots * SLOT
    records = Records()
    for seq, kind, flags, pool, small, body in sorted(raw):
        kind = KINDS.get(kind)
        if kind == "alloc":
            address, requested, granted, _, op, _ = struct.unpack_from("<QQQqII", data, body)
            records.append(Alloc(seq, pool, address, requested, granted, strings[op]))
        elif kind == "free":
            records.append(Free(seq, pool, *struct.unpack_from("<Q", data, body)))
        elif kind == "mark":
            number, name, detail = struct.unpack_from("<qII", data, body)
            edge = "begin" if flags & 2 else "end" if flags & 4 else "instant"
            records.append(Mark(seq, MARKS.get(small, small), edge, strings[name], number, strings[detail]))
        elif kind == "tag":
            address, size, name, layer = struct.unpack_from("<QQII", data, body)
            records.append(Tag(seq, CATEGORIES[small], address, size, strings[name], strings[layer]))
        elif kind == "setting":
            key, value = struct.unpack_from("<II", data, body)
            records.append(Setting(seq, strings[key], strings[value]))
        elif kind == "report":
            numbers = iter(struct.unpack_from(f"<{REPORT_NUMBERS}Q", data, body))
            texts = iter(struct.unpack_from(f"<{REPORT_TEXTS}I", data, body + 8 * REPORT_NUMBERS))
            fields = {field["name"]: strings[next(texts)] if field["type"] == "string" else next(numbers)
                      for field in REPORTED[small]["fields"]}
            records.append(Report(seq, REPORTED[small]["name"], fields))
        elif kind == "op_source":
            op, file, function, line, layer = struct.unpack_from("<5I", data, body)
            records.append(OpSource(strings[op], strings[file], line, strings[function], strings[layer]))
    return records
