"""Arrow files by readers of others: pyarrow, and DuckDB through it. The same rows as in Parquet and JSON Lines."""
import json

import duckdb
import pytest
import vramscope
from format_cases import CASES, TABLES
from pyarrow import ipc, parquet


def read(file):
    table = ipc.open_file(file).read_all()
    table.validate(full=True)
    return table


@pytest.mark.parametrize("case", CASES)
def test_pyarrow_reads_the_same_rows(made, export, case):
    trace, truth = made(case)
    for name in TABLES:
        table = read(export(trace, "arrow", "--table", name))
        objects = [json.loads(line) for line in export(trace, "jsonl", "--table", name).read_text().splitlines()]
        assert [{key: value for key, value in row.items() if value is not None} for row in table.to_pylist()] == objects
    assert read(export(trace, "arrow")).num_rows == truth["allocs"]


def test_types_are_those_of_parquet(made, export):
    trace, _ = made("killed")
    for name in TABLES:
        assert read(export(trace, "arrow", "--table", name)).schema == parquet.read_schema(export(trace, "parquet", "--table", name))


def test_several_batches(build, run, export, tmp_path):
    trace = tmp_path / "many.vram"
    truth = json.loads(run([build / "tracegen", "clean", trace, "seed=7", "events=150000"]).stdout)
    file = export(trace, "arrow", "--table", "events")
    assert ipc.open_file(file).num_record_batches >= 2
    events = read(file)
    assert duckdb.sql("select max(live), sum(change) from events").fetchall() == [(truth["peak"], truth["end"])]
    with ipc.open_stream(file.read_bytes()[8:]) as stream:   # an Arrow file contains a stream
        assert stream.read_all() == events


def test_names_that_are_not_utf8(build, run, export, tmp_path):
    trace = tmp_path / "hostile.vram"
    run([build / "tracegen", "hostile", trace])
    for name in TABLES:
        read(export(trace, "arrow", "--table", name))


def test_tables_in_python(made):
    trace, truth = made("autotune")
    opened = vramscope.open(trace)
    blocks = opened.arrow()
    assert blocks.num_rows == truth["allocs"]
    assert max(opened.arrow("events").column("live").to_pylist()) == truth["peak"]
    with pytest.raises(ValueError, match="invalid table"):
        opened.arrow("colours")


def test_tables_of_a_run_folder_in_python(build, run, tmp_path):
    truth = {}
    for rank in range(2):
        trace = tmp_path / f"node-{100 + rank}-1.vram"
        truth[rank] = json.loads(run([build / "tracegen", "clean", trace, f"rank={rank}", f"layers={3 + rank}"]).stdout)
    places = vramscope.open(tmp_path).arrow("places").to_pylist()
    assert {row["rank"]: row["peak"] for row in places if row["place"] == "GPU 0"} == {rank: truth[rank]["peak"] for rank in truth}
