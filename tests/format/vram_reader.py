"""A reader of .vram files written from docs/format/vram-1.md alone: slow, plain, and shares nothing with src/trace/.

It knows no table of events by heart; those come from schema/trace/schema.json, as the specification says.
"""
import ctypes
import struct
from dataclasses import dataclass

NONE = 2**64 - 1
MASK = 2**64 - 1
_zstd = ctypes.CDLL("libzstd.so.1")
_zstd.ZSTD_decompress.restype = ctypes.c_size_t
_xxhash = ctypes.CDLL("libxxhash.so.0")
_xxhash.XXH3_64bits.restype = ctypes.c_uint64


class FormatError(Exception):
    pass


def checksum(data):
    return _xxhash.XXH3_64bits(ctypes.c_char_p(data), ctypes.c_size_t(len(data)))


def decompress(data, size):
    out = ctypes.create_string_buffer(max(size, 1))
    got = _zstd.ZSTD_decompress(out, ctypes.c_size_t(size), ctypes.c_char_p(data), ctypes.c_size_t(len(data)))
    if got != size:
        raise FormatError("a zstd frame does not hold what the block head says")
    return out.raw[:size]


def unzigzag(value):
    return (value >> 1) ^ -(value & 1)


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & MASK

    def bytes(self, count):
        if self.at + count > len(self.data):
            raise FormatError("bytes end early")
        self.at += count
        return self.data[self.at - count:self.at]

    def rest(self):
        return self.bytes(len(self.data) - self.at)

    @property
    def left(self):
        return len(self.data) - self.at


def array(data, count):
    packing, data = data[0], data[1:]
    if packing == 0:
        cursor = Cursor(data)
        values = [cursor.varint() for _ in range(count)]
        assert cursor.left == 0
        return values
    if packing == 1:
        return [Cursor(data).varint()] * count
    if packing == 2:
        assert len(data) == count
        return list(data)
    if packing == 3:
        return list(struct.unpack(f"<{count}Q", data))
    raise FormatError(f"packing {packing}")


def sized_array(cursor, count):
    return array(cursor.bytes(cursor.varint()), count)


@dataclass
class Column:
    transform: int
    shift: int
    data: bytes

    def values(self, rows):
        """plain, delta and dict: the transforms that need no other column."""
        if self.transform == 0:
            return array(self.data, rows)
        if self.transform == 1:
            values, last = [], 0
            for coded in array(self.data, rows):
                last = (last + (unzigzag(coded) << self.shift)) & MASK
                values.append(last)
            return values
        if self.transform == 2:
            return [value for value, _ in self.dict_values(rows)]
        raise FormatError(f"transform {self.transform}")

    def dict_values(self, rows):
        cursor = Cursor(self.data)
        distinct, before = [], 0
        for difference in sized_array(cursor, cursor.varint()):
            before = (before + unzigzag(difference)) & MASK
            distinct.append(before)
        last, seen = 0, 0
        for index in array(cursor.rest(), rows):
            if index == 1:
                last, seen = seen, seen + 1
            elif index >= 2:
                last = index - 2
            yield distinct[last], last

    def texts(self, rows):
        cursor = Cursor(self.data)
        return [cursor.bytes(length) for length in sized_array(cursor, rows)]

    def lists(self, rows):
        cursor = Cursor(self.data)
        counts = sized_array(cursor, rows)
        flat = iter(array(cursor.rest(), sum(counts)))
        return [[next(flat) for _ in range(count)] for count in counts]


@dataclass
class Table:
    id: int
    first: int
    rows: int
    columns: dict

    def values(self, field, rows=None):
        rows = self.rows if rows is None else rows
        return self.columns[field].values(rows) if field in self.columns else [0] * rows


def tables(payload):
    cursor = Cursor(payload)
    while cursor.left:
        table = Table(cursor.varint(), cursor.varint(), cursor.varint(), {})
        for _ in range(cursor.varint()):
            field, coding = cursor.varint(), cursor.varint()
            table.columns[field] = Column(coding & 15, coding >> 4 & 63, cursor.bytes(cursor.varint()))
        yield table


HEAD = struct.Struct("<4sBBHIIQQIIQQ")


@dataclass
class Block:
    offset: int
    type: int
    flags: int
    first_event: int
    first_alloc: int
    events: int
    allocs: int
    payload: bytes


def blocks(data):
    """Every block from the header on, until the file ends or a block is not whole."""
    at = 40
    while len(data) - at >= HEAD.size:
        head = data[at:at + HEAD.size]
        magic, kind, codec, flags, stored, raw, first_event, first_alloc, events, allocs, payload_sum, head_sum = HEAD.unpack(head)
        if magic != b"VBLK" or checksum(head[:-8]) != head_sum:
            return
        payload = data[at + HEAD.size:at + HEAD.size + stored]
        if len(payload) < stored or checksum(payload) != payload_sum:
            return
        yield Block(at, kind, flags, first_event, first_alloc, events, allocs, decompress(payload, raw) if codec == 1 else payload)
        at += HEAD.size + stored


class Trace:
    """All of a trace in memory: dictionaries as lists of dicts by field name, events as dicts in order."""

    def __init__(self, data, schema):
        if data[:8] != b"\x89VRAM\r\n\x1a":
            raise FormatError("no trace")
        major, minor, header_bytes, self.start_realtime_us, _, header_sum = struct.unpack("<HHIQQQ", data[8:40])
        if checksum(data[:32]) != header_sum or header_bytes != 40 or major != schema["version"]["major"]:
            raise FormatError("header")
        self.schema = schema
        self.dictionaries = {d["name"]: [] for d in schema["dictionaries"]}
        self.dictionaries["string"].append(b"")
        self.dictionaries["stack"].append({"hash": 0, "frames": [], "cut": 0})
        self.events = []
        self.complete = data[-8:] == b"VRAMEND\n"
        self.births = {}  # ordinal in the recording: position among the alloc events of the file
        for block in blocks(data):
            if block.type == 1:
                self._names(block.payload)
            elif block.type == 2:
                self._chunk(block)

    def _names(self, payload):
        by_id = {d["id"]: d for d in self.schema["dictionaries"]}
        for table in tables(payload):
            if table.id not in by_id:
                continue
            dictionary = by_id[table.id]
            entries = self.dictionaries[dictionary["name"]]
            assert table.first == len(entries)
            if dictionary["name"] == "string":
                entries.extend(table.columns[1].texts(table.rows))
                continue
            columns = {}
            for field in dictionary["fields"]:
                column = table.columns.get(field["id"])
                if field["type"].endswith("[]"):
                    columns[field["name"]] = column.lists(table.rows) if column else [[]] * table.rows
                else:
                    columns[field["name"]] = self._typed(table.values(field["id"]), field["type"])
            entries.extend(dict(zip(columns, row)) for row in zip(*columns.values()))

    @staticmethod
    def _typed(values, kind):
        if kind == "i64":
            return [unzigzag(value) for value in values]
        return [bool(value) for value in values] if kind == "bool" else values

    def _chunk(self, block):
        by_id = {table.id: table for table in tables(block.payload)}
        common = by_id[0]
        kinds = common.values(1)
        assert len(kinds) == block.events
        ordinals = range(block.first_alloc, block.first_alloc + block.allocs)
        if 5 in common.columns:
            ordinals = common.columns[5].values(block.allocs)
        rows = {kind: iter(self._rows(kind, by_id, kinds, ordinals, block.first_alloc)) for kind in set(kinds)}
        for kind, seq, time_us, thread in zip(kinds, common.values(2), common.values(3), common.values(4)):
            row = next(rows[kind], None)
            if row is not None:
                self.events.append({"event": row.pop("event"), "seq": seq, "time_us": time_us, "thread": thread, **row})

    def _rows(self, kind, by_id, kinds, ordinals, first_alloc):
        event = next((e for e in self.schema["events"] if e["id"] == kind), None)
        if event is None:
            return
        table = by_id[kind]
        if event["name"] == "alloc":
            frees = self._frees(by_id[2], kinds, ordinals, first_alloc)["alloc"] if 2 in by_id else []
            columns = self._allocs(table, kinds, frees, ordinals, first_alloc)
        elif event["name"] == "free":
            columns = self._frees(table, kinds, ordinals, first_alloc)
        else:
            columns = {f["name"]: self._typed(table.values(f["id"]), f["type"]) for f in event["fields"]}
        for row in zip(*columns.values()):
            yield {"event": event["name"], **dict(zip(columns, row))}

    def _allocs(self, table, kinds, frees, ordinals, first_alloc):
        sites, addresses, granted = [], [], []
        last_address, last_slack, before = {}, {}, 0
        column = table.columns[2]
        if column.transform == 9:
            cursor = Cursor(column.data)
            ago = sized_array(cursor, table.rows)
            moved = iter(array(cursor.rest(), ago.count(0)))
        else:
            assert column.transform == 3
            ago, moved = [0] * table.rows, iter(array(column.data, table.rows))
        slack = array(table.columns[3].data, table.rows)
        assert table.columns[3].transform == 4
        site_of = [site for site, _ in table.columns[1].dict_values(table.rows)]
        freed = {}  # granted bytes: the last eight addresses of that size, the newest first
        frees = iter(frees)
        for kind in kinds:
            if kind == 2:
                row = next(frees) - first_alloc
                if 0 <= row < len(sites):
                    freed[granted[row]] = [addresses[row], *freed.get(granted[row], [])][:8]
            if kind != 1:
                continue
            row = len(sites)
            site = site_of[row]
            last_slack[site] = last_slack.get(site, 0) + unzigzag(slack[row])
            size = (self.dictionaries["site"][site]["requested"] + last_slack[site]) & MASK
            if ago[row]:
                before = freed[size].pop(ago[row] - 1)
            else:
                before = (last_address.get(site, before) + (unzigzag(next(moved)) << column.shift)) & MASK
            last_address[site] = before
            sites.append(site)
            addresses.append(before)
            granted.append(size)
        births = []
        for ordinal in ordinals:
            births.append(self.births.setdefault(ordinal, len(self.births)))
        return {"ordinal": births, "site": sites, "address": addresses, "granted": granted, "step": self._typed(table.values(4), "i64")}

    def _frees(self, table, kinds, ordinals, first_alloc):
        back = iter(array(table.columns[1].data, table.rows))
        ordinals, following = iter(ordinals), first_alloc
        allocs = []
        for kind in kinds:
            if kind == 1:
                following = next(ordinals) + 1
            elif kind == 2:
                distance = next(back)
                allocs.append(NONE if distance == 0 else following - distance)
        unmatched = [row for row, alloc in enumerate(allocs) if alloc == NONE]
        addresses, pools = [0] * table.rows, [None] * table.rows
        for field, into in ((2, addresses), (3, pools)):
            if field in table.columns:
                for row, value in zip(unmatched, array(table.columns[field].data, len(unmatched))):
                    into[row] = value
        return {"alloc": allocs, "address": addresses, "pool": pools, "stream": table.values(4)}
