"""Reads a spool as src/spool/layout.h describes it: a second reader, so that tests see what the recorder was told without the collector."""
import struct
from collections import namedtuple

HEADER = SEGMENT = 64 * 1024
SLOT = 32
KINDS = {1: "alloc", 2: "free", 4: "mark", 5: "tag", 8: "setting", 32: "string", 36: "op_source"}
MARKS = {1: "phase", 2: "epoch", 3: "step", 4: "batch", 5: "layer", 6: "scope", 7: "check", 8: "function", 9: "process", 10: "tape",
         11: "retrace"}
CATEGORIES = ["unknown", "parameter", "gradient", "optimizer_state", "activation", "input", "temporary", "xla_temporary", "constant",
              "buffer", "workspace"]

Alloc = namedtuple("Alloc", "seq pool address requested granted op")
Free = namedtuple("Free", "seq pool address")
Mark = namedtuple("Mark", "seq kind edge name number detail")
Tag = namedtuple("Tag", "seq category address bytes name layer")
Setting = namedtuple("Setting", "seq key value")
OpSource = namedtuple("OpSource", "op file line function layer")


class Told(list):
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
    told = Told()
    for seq, kind, flags, pool, small, body in sorted(raw):
        kind = KINDS.get(kind)
        if kind == "alloc":
            address, requested, granted, _, op, _ = struct.unpack_from("<QQQqII", data, body)
            told.append(Alloc(seq, pool, address, requested, granted, strings[op]))
        elif kind == "free":
            told.append(Free(seq, pool, *struct.unpack_from("<Q", data, body)))
        elif kind == "mark":
            number, name, detail = struct.unpack_from("<qII", data, body)
            edge = "begin" if flags & 2 else "end" if flags & 4 else "instant"
            told.append(Mark(seq, MARKS.get(small, small), edge, strings[name], number, strings[detail]))
        elif kind == "tag":
            address, size, name, layer = struct.unpack_from("<QQII", data, body)
            told.append(Tag(seq, CATEGORIES[small], address, size, strings[name], strings[layer]))
        elif kind == "setting":
            key, value = struct.unpack_from("<II", data, body)
            told.append(Setting(seq, strings[key], strings[value]))
        elif kind == "op_source":
            op, file, function, line, layer = struct.unpack_from("<5I", data, body)
            told.append(OpSource(strings[op], strings[file], line, strings[function], strings[layer]))
    return told
