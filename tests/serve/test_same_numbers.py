"""The same number reads the same in the text of the verbs, in --json, on the page and in a report."""
import base64
import gzip
import http.client
import json
import re
import struct
import subprocess
from decimal import ROUND_HALF_UP, Decimal

import pytest

from vramscope import _units

# TensorFlow and PyTorch, XLA, out of memory (once killed by it), a leak, steps that were found, two devices, ranks.
CASES = {"clean": [], "pytorch": [], "xla": [], "leak": [], "killed": [], "toobig": [], "small": [], "shapes": [], "nomarks": [], "autotune": [], "devices": [],
         "rank0": ["clean", "rank=0"], "rank1": ["leak", "rank=1"]}
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
REQUESTS = {"overview": "overview?trace={}", "peak": "peak?trace={}&at=peak&open=category%2Clayer%2Cop%2Cline",
            "steady": "peak?trace={}&at=steady&open=category%2Clayer%2Cop%2Cline", "layers": "layers?trace={}&at=steady"}


def in_unit(number, unit):
    """One decimal, a half rounded up, a comma for thousands: the rule, worked out with decimals."""
    return f"{number:,}" if unit == "B" else f"{(Decimal(number) / UNITS[unit]).quantize(Decimal('0.1'), ROUND_HALF_UP):,}"


def size(number):
    unit = "GiB" if number >= 1_000_000 << 20 else "MiB" if number >= 1 << 20 else "KiB" if number >= 1 << 10 else "B"
    return f"{in_unit(number, unit)} {unit}"


def cells(line):
    return re.split(r" {2,}", line.strip())


@pytest.fixture(scope="module")
def traces(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    for name, (*case,) in CASES.items():
        subprocess.run([build / "tracegen", *(case[:1] or [name]), folder / f"{name}.vram", "seed=7", *case[1:]], check=True, capture_output=True)
    return [folder / f"{name}.vram" for name in CASES]


@pytest.fixture(scope="module")
def of_server(vramscope, traces):
    """{trace's number: {request: answer}} from a running server."""
    server = subprocess.Popen([vramscope, "serve", *traces], stdout=subprocess.PIPE, text=True)
    try:
        port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)\n", server.stdout.readline()).groups()
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=600)

        def ask(path):
            connection.request("GET", f"/api/{path}", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status == 200, (path, data[:200])
            return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data

        yield [{name: ask(path.format(i)) for name, path in REQUESTS.items()} for i in range(len(traces))]
    finally:
        server.terminate()
        server.wait(600)


@pytest.fixture(scope="module")
def of_report(vramscope, traces, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    subprocess.run([vramscope, "report", *traces, "-o", file], capture_output=True)     # one of them was killed: exit code 2
    packed = re.search(r'<script id="payload" type="text/plain">([^<]*)', file.read_text()).group(1)
    data, at, parts = gzip.decompress(base64.b64decode(packed)), 0, []
    while at + 4 <= len(data):
        length = struct.unpack_from("<I", data, at)[0]
        parts.append(data[at + 4:at + 4 + length])
        at += 4 + length
    answers = {key.decode(): answer for key, answer in zip(parts[::2], parts[1::2])}
    return [{name: answers[path.format(i)] for name, path in REQUESTS.items()} for i in range(len(traces))]


@pytest.fixture(scope="module")
def pages(root, of_server, of_report):
    """The texts of server's and report's page, by the page's own code."""
    def shown(answers):
        node = subprocess.run([root / "tools/setup.sh", "node"], capture_output=True, text=True, check=True).stdout.strip()
        asked = json.dumps([{name: base64.b64encode(data).decode() for name, data in each.items()} for each in answers])
        return json.loads(subprocess.run([f"{node}/node" if node else "node", root / "tests/serve/page_figures.mjs"], input=asked, capture_output=True, text=True, check=True).stdout)
    return list(zip(shown(of_server), shown(of_report)))


@pytest.mark.parametrize("number, name", list(enumerate(CASES)))
def test_one_number_is_written_one_way(vramscope, traces, pages, number, name):
    def verb(*words):
        text, document = (subprocess.run([vramscope, *words, traces[number], *more], capture_output=True, text=True).stdout for more in ([], ["--json"]))
        return text, json.loads(document)

    server, report = pages[number]
    assert server == report
    summary_text, summary = verb("summary")
    place = summary["overview"]["places"][summary["overview"]["main_place"]]

    # Peak and steady peak: figure, sentences, table.
    figures = dict(server["figures"])
    assert figures["Peak"] == size(place["peak"])
    assert figures["Steady peak"] == (size(place["steady_peak"]) if place["steady"] else "–")
    headline, peak = summary_text.splitlines()[:2]
    assert server["sentences"]["overview"] == summary["sentence"] == headline
    assert size(summary["pools"][0]["peak_bytes"]) in peak and summary["overview"]["sentence"] in summary_text
    for page, words in (("peak", ["--phase", "all"]), ("steady", [])):
        text, document = verb("peak", *words)
        assert server["sentences"][page] == document["sentence"] == text.splitlines()[0]
        assert size(document["total"]) in document["sentence"]

    # Categories at the peak.
    text, document = verb("peak", "--phase", "all", "--by", "category")
    head, *rows = [cells(line) for line in text.splitlines() if line.startswith("  ")]
    unit = next(word for word in head if word in UNITS)
    shown = {row[0]: row[head.index(unit)] for row in rows if len(row) == len(head)}
    from_json = {group["keys"][0]: in_unit(group["bytes"], unit) for group in document["groups"]}
    assert from_json == dict(server["categories"]) and {**shown, **from_json} == shown

    # The ledger, line by line.
    text, document = verb("ledger", "--at", "peak")
    rows = [cells(line)[:2] for line in text.splitlines() if line.startswith("  ")]
    unit = document["unit"]
    assert unit == rows[0][1]
    from_json = [["card", in_unit(document["card"], unit)]] if document["card"] else []
    for line in document["lines"]:
        from_json.append([line["name"], "–" if line["bytes"] is None else in_unit(line["bytes"], unit)])
        from_json += [[part["name"], in_unit(part["value"], unit)] for part in line["parts"]]
    assert rows[1:1 + len(from_json)] == from_json
    names = {"categories": "live blocks by category"}
    page = [[names.get(name.lower(), name.lower()), figure] for name, figure, _ in server["ledger"]]
    lines = [["card", in_unit(document["card"], unit)]] * bool(document["card"]) + [
        [line["name"].lower(), "–" if line["bytes"] is None else in_unit(line["bytes"], unit)] for line in document["lines"]]
    assert page == lines
    assert [part for name, _, parts in server["ledger"] if name != "Card" for part in parts] == [
        [part["name"], in_unit(part["value"], unit)] for line in document["lines"] for part in line["parts"]]

    # Layers.
    text, document = verb("layers", "-n", "0")
    table = [cells(line) for line in text.splitlines() if line.startswith("  ")]
    head, rows = (table[0], table[1:1 + len(document["rows"])]) if table else ([], [])
    assert text.splitlines()[0] == document["sentence"] == server["sentences"]["layers"]
    unit = next((word for word in head if word in UNITS), "B")
    for row, shown, page in zip(document["rows"], rows, server["layers"], strict=True):
        from_json = [in_unit(row[part], unit) for part in ("parameters", "gradients", "optimizer_state", "activations", "activation_gradients", "temporaries", "total", "own_peak")]
        assert page == [row["name"], *from_json]
        *parts, _, total, own = [cell for cell in shown if re.fullmatch(r"[0-9,.]+", cell)]     # not every layer has a line
        assert [*parts, total, own] == from_json


def test_halves_are_rounded_up_everywhere():
    """7,602,176 bytes are 7.25 MiB."""
    assert size(7_602_176) == "7.3 MiB"


def test_the_python_package_has_the_same_rule():
    for number in (0, 999, 1023, 1024, 1536, 7_602_176, (1 << 20) - 1, 1 << 20, 5 << 30, (1_000_000 << 20) - 1, 1_100_000 << 20):
        assert _units.size(number) == size(number)
    assert [_units.duration(seconds) for seconds in (12e-6, 0.00635, 0.85, 8, 7200, 18_000)] == [
        "12 µs", "6.4 ms", "850.0 ms", "8.0 s", "120.0 min", "5.0 h"]
    assert [_units.percent(share) for share in (0, 0.0004, 0.0005, 0.1256, 1, 12.5)] == ["0.0 %", "0.0 %", "0.1 %", "12.6 %", "100.0 %", "1250.0 %"]
