"""Parquet files by three readers of others: pyarrow, DuckDB and ClickHouse (chDB). The same SQL runs on both engines."""
import json
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from format_cases import CASES, TABLES
from pyarrow import parquet


@pytest.mark.parametrize("case", CASES)
def test_pyarrow_reads_the_same_rows(made, export, case):
    trace, truth = made(case)
    for table in TABLES:
        rows = parquet.read_table(export(trace, "parquet", "--table", table)).to_pylist()
        objects = [json.loads(line) for line in export(trace, "jsonl", "--table", table).read_text().splitlines()]
        assert [{key: value for key, value in row.items() if value is not None} for row in rows] == objects
    file = parquet.ParquetFile(export(trace, "parquet"))
    assert file.metadata.num_rows == truth["allocs"]
    granted = file.read(["granted"]).column("granted").to_pylist()
    at = [field.name for field in file.schema_arrow].index("granted")
    statistics = file.metadata.row_group(0).column(at).statistics
    assert (statistics.min, statistics.max) == (min(granted), max(granted))


def test_several_row_groups(build, run, export, tmp_path):
    trace = tmp_path / "many.vram"
    truth = json.loads(run([build / "tracegen", "clean", trace, "seed=7", "events=300000"]).stdout)
    file = parquet.ParquetFile(export(trace, "parquet", "--table", "events"))
    assert file.metadata.num_row_groups >= 2
    rows = file.read(["change", "live"])
    assert max(rows.column("live").to_pylist()) == truth["peak"]
    assert sum(rows.column("change").to_pylist()) == truth["end"]


SQL = """select place, max(live) as peak, sum(change) as at_end, count(*) as events
from {events} group by place order by place"""


# In a process of its own: chDB ignores and blocks SIGPIPE in the one that imports it, and every program started later inherits that.
CHDB = "import sys, chdb; sys.stdout.write(chdb.query(sys.argv[1], 'JSONCompact').data())"


@pytest.fixture
def clickhouse(run):
    return lambda sql: json.loads(run([sys.executable, "-c", CHDB, sql]).stdout)["data"]


def test_the_same_sql_on_duckdb_and_clickhouse(made, export, clickhouse):
    trace, truth = made("leak")
    file = export(trace, "parquet", "--table", "events")
    ours = duckdb.sql(SQL.format(events=f"read_parquet('{file}')")).fetchall()
    theirs = clickhouse(SQL.format(events=f"file('{file}', Parquet)"))
    assert [list(map(str, row)) for row in ours] == [list(map(str, row)) for row in theirs]
    assert [row[1] for row in ours if row[0] == "GPU 0"] == [truth["peak"]]


@pytest.fixture
def query(vramscope, run):
    def call(*words, code=0, python=sys.executable, **env):
        return run([vramscope, "query", *words], code=code, env={**os.environ, "VRAMSCOPE_PYTHON": str(python), **env})

    return call


def test_query(made, query, tmp_path):
    trace, truth = made("autotune")
    done = query(trace, "select max(live) as peak from events where place = 'GPU 0'", "--format", "json")
    assert json.loads(done.stdout) == [{"peak": truth["peak"]}]
    done = query(trace, "select count(*) as n, min(block) as first from blocks", "--format", "csv")
    assert done.stdout == f"n,first\n{truth['allocs']},0\n"
    done = query(trace, "select place, peak from places where level = 'tensor' order by peak desc limit 1")
    assert done.stdout.split() == ["place", "peak", "GPU", "0", str(truth["peak"])]
    out = tmp_path / "out.parquet"
    query(trace, "select * from steps", "--format", "parquet", "-o", out)
    assert duckdb.sql(f"select count(*) from '{out}'").fetchall()[0][0] >= truth["steps"]


def test_tables_are_named_as_in_sql(made, query):
    trace, truth = made("autotune")
    assert query(trace, "SELECT COUNT(*) AS n FROM BLOCKS", "--format", "csv").stdout == f"n\n{truth['allocs']}\n"
    assert query(trace, "show tables", "--format", "csv").stdout.split() == ["name", *sorted(TABLES)]


def documented_columns(root):
    """The table of tables in the guide: name -> columns, without what it says of them."""
    guide = (root / "docs/guide/formats.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \|$", guide[guide.index("\n## Tables"):], re.MULTILINE)
    return {name: re.sub(r" \([^)]*\)", "", columns).split(", ") for name, columns in rows}


def test_the_guide_lists_every_table_and_column(made, query, root):
    trace, _ = made("killed")
    documented = documented_columns(root)
    assert sorted(documented) == sorted(TABLES)
    # The program writes the tables that a query names.
    sql = "select table_name, column_name from information_schema.columns where table_name in ({}) order by ordinal_position"
    rows = json.loads(query(trace, sql.format(", ".join(f"'{name}'" for name in TABLES)), "--format", "json").stdout)
    for table in TABLES:
        assert [row["column_name"] for row in rows if row["table_name"] == table] == ["run", "host", "rank", *documented[table]], table


def test_names_with_quotes(vramscope, build, run, query, clickhouse, tmp_path):
    """In the trace, and in the names of the folder, the file and the result."""
    folder = tmp_path / """it's "today"; drop $1"""
    folder.mkdir()
    frame = {"filename": """o'neil's "model".py""", "line": 3, "name": "f('x')"}
    alloc = {"action": "alloc", "addr": 1 << 20, "size": 512, "stream": 0, "time_us": 5, "frames": [frame]}
    (folder / "it's.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [[alloc]]}))
    trace = folder / "it's-100-1.vram"
    run([vramscope, "import", folder / "it's.pickle", "-o", trace])
    sql = """select file, "function" from stacks where file = 'o''neil''s "model".py'"""
    assert json.loads(query(trace, sql, "--format", "json").stdout) == [{"file": frame["filename"], "function": frame["name"]}]
    out = folder / "the result's.parquet"
    query(folder, "select run, host, file from stacks", "--format", "parquet", "-o", out)
    expected = [(folder.name, "it's", frame["filename"])]
    assert [tuple(row.values()) for row in parquet.read_table(out).to_pylist()] == expected
    quoted = str(out).replace("'", "''")
    assert [tuple(row) for row in clickhouse(f"select run, host, file from file('{quoted}', Parquet)")] == expected


def test_json_of_a_query_is_json(made, query):
    def refused(constant):
        raise ValueError(constant)

    trace, _ = made("autotune")
    done = query(trace, "select 1.5 as half, 'inf'::double as infinite, ['nan'::double, 2] as list, null as missing", "--format", "json")
    assert json.loads(done.stdout, parse_constant=refused) == [{"half": 1.5, "infinite": None, "list": [None, 2], "missing": None}]


def test_query_of_many_traces(build, run, query, tmp_path):
    truth = {}
    for rank in range(3):
        trace = tmp_path / f"node-{100 + rank}-1.vram"
        truth[rank] = json.loads(run([build / "tracegen", "clean", trace, f"seed={rank}", f"rank={rank}", f"layers={3 + rank}"]).stdout)
    done = query(tmp_path, "select rank, host, peak from places where place = 'GPU 0' order by rank", "--format", "json")
    assert [(row["rank"], row["host"], row["peak"]) for row in json.loads(done.stdout)] == \
        [(rank, "node", truth[rank]["peak"]) for rank in range(3)]


def test_runs_of_the_same_name_stay_apart(build, run, query, tmp_path):
    """Folders of two days, files of one name beside them, and a profile of another tool; the same trace twice is an error."""
    for day, layers in ("mon", 3), ("tue", 5):
        (tmp_path / day / "run").mkdir(parents=True)
        run([build / "tracegen", "clean", tmp_path / day / "run/node-100-1.vram", f"layers={layers}"])
        run([build / "tracegen", "clean", tmp_path / day / "one.vram", f"layers={layers}"])
    log = tmp_path / "rmm.csv"
    log.write_text("Thread,Time,Action,Pointer,Size,Stream\n7,00:00:01.000000,allocate,0x7f0000000000,2048,0x0\n")
    places = [tmp_path / day / name for day in ("mon", "tue") for name in ("run", "one.vram")]
    done = query(*places, log, "select run, count(*) as n from places where place = 'GPU 0' group by run order by run", "--format", "json")
    assert [(row["run"], row["n"]) for row in json.loads(done.stdout)] == [("mon/one", 1), ("mon/run", 1), ("rmm.csv", 1), ("tue/one", 1), ("tue/run", 1)]
    alone = query(places[0], "select distinct run, host from places", "--format", "json")
    assert json.loads(alone.stdout) == [{"run": "run", "host": "node"}]
    for again in (places[0], places[0] / "node-100-1.vram", tmp_path / "mon/../mon/run"):
        done = query(places[0], again, "select 1", code=2)
        assert "named twice" in done.stderr and done.stderr.count("\n") == 1


def test_files_partitioned_by_run_host_and_rank(build, run, query, clickhouse, tmp_path):
    """As the guide writes them; the same SQL runs on DuckDB and ClickHouse, which take the columns from the names of the folders."""
    folder, truth = tmp_path / "today", {}
    folder.mkdir()
    for rank in range(2):
        truth[rank] = json.loads(run([build / "tracegen", "clean", folder / f"node-{100 + rank}-1.vram", f"rank={rank}", f"layers={3 + rank}"]).stdout)
    query(folder, f"copy events to '{tmp_path}/events' (format parquet, partition_by (run, host, rank))")
    assert len(list((tmp_path / "events/run=today/host=node").iterdir())) == 2
    sql = "select run, host, rank, max(live) as peak, count(*) as n from {events} group by run, host, rank order by rank"
    files = f"'{tmp_path}/events/**/*.parquet'"
    ours = duckdb.sql(sql.format(events=f"read_parquet({files}, hive_partitioning=true)")).fetchall()
    theirs = clickhouse(sql.format(events=f"file({files}, Parquet)"))
    assert [list(map(str, row)) for row in ours] == [list(map(str, row)) for row in theirs]
    assert [row[:4] for row in ours] == [("today", "node", rank, truth[rank]["peak"]) for rank in range(2)]


def test_wrong_queries(made, query, vramscope, run, tmp_path):
    trace, _ = made("autotune")
    for words in ([trace, "selekt 1"], [trace, ""], [trace, "-- nothing"], [trace], [trace, "select 1", "--format", "parquet"]):
        done = query(*words, code=2)
        assert done.stderr.count("\n") == 1 and done.stdout == ""
    # With what may have been meant, as DuckDB says it.
    assert '"blocks"' in query(trace, "select * from block", code=2).stderr
    assert '"granted"' in query(trace, "select grantd\nfrom blocks", code=2).stderr
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -S -I \"$@\"\n")
    python.chmod(0o755)
    for chosen, part in (python, "needs DuckDB"), ("/bin/false", "/bin/false: failed before it ran the query"), ("/nonexist", "VRAMSCOPE_PYTHON=/nonexist"):
        done = run([vramscope, "query", trace, "select 1"], code=2, env={**os.environ, "VRAMSCOPE_PYTHON": str(chosen)})
        assert part in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""


def test_a_query_shows_hostile_names_as_text(build, run, query, tmp_path):
    trace = tmp_path / "hostile.vram"
    run([build / "tracegen", "hostile", trace])
    done = query(trace, "select distinct layer from blocks where layer <> ''")
    assert "bell" in done.stdout and "stop-commands" in done.stdout
    assert all(c.isprintable() for line in done.stdout.split("\n") for c in line)
    assert not any(line.lstrip().startswith("::") or "##" in line for line in done.stdout.splitlines())
    done = query(trace, "select cast(layer as integer) from blocks where layer like 'bell%'", code=2)
    assert done.stderr.count("\n") == 1 and done.stderr.strip().isprintable()


def test_a_query_spills_into_its_own_folder(made, query, tmp_path):
    """Not into the current one, where somebody else may have put a link named .tmp; and its output is the result alone."""
    trace, _ = made("autotune")
    done = query(trace, "select current_setting('temp_directory') as spill, current_setting('enable_progress_bar') as bar", "--format", "json")
    [row] = json.loads(done.stdout)
    assert Path(row["spill"]).name.startswith("vramscope-query-") and not Path(row["spill"]).exists() and row["bar"] is False


def test_a_query_that_does_not_fit_into_memory_uses_the_disk(build, run, query, tmp_path):
    """A million blocks in a trace of a few KiB: its memory is what any trace may use, 512 MiB."""
    trace = tmp_path / "million.vram"
    run([build / "tracegen", "million", trace])
    done = query(trace, "select count(*) as n from (select distinct * from blocks)", "--format", "csv")
    assert done.stdout == "n\n1000000\n" and not done.stderr


def test_a_query_is_bounded_by_the_size_of_the_trace(build, run, query, tmp_path):
    trace = tmp_path / "million.vram"
    run([build / "tracegen", "million", trace])
    settings = [f"current_setting('{name}') as {name}" for name in ("memory_limit", "max_temp_directory_size", "threads")]
    done = query(trace, "select " + ", ".join(settings), "--format", "json")
    [row] = json.loads(done.stdout)
    assert row["memory_limit"].startswith("513.") and row["max_temp_directory_size"].startswith("8.0 GiB") and row["threads"] <= 4
    done = query(trace, "select * from blocks", code=2)
    [line] = done.stderr.splitlines()
    limits = r"513\.\d MiB of memory or 8,\d{3}\.\d MiB of disk, the limits for traces of this size"
    remedy = "choose fewer rows or columns, or --format csv"
    assert not done.stdout and re.fullmatch(f"vramscope: query: needs more than {limits}; {remedy}", line), line


def test_an_interpreter_that_dies_is_reported(made, query, tmp_path):
    trace, _ = made("autotune")
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nkill -SEGV $$\n")
    python.chmod(0o755)
    done = query(trace, "select 1", code=2, python=python)
    assert done.stderr == (f"vramscope: query: {python} was ended by signal 11 (Segmentation fault); if it ran out of memory, choose fewer rows or "
                           "columns, or --format csv\n")


@pytest.mark.parametrize("to", ["the terminal's processes", "vramscope alone"])
def test_an_interrupted_query_ends_quietly(made, vramscope, wait_until, tmp_path, to):
    trace, _ = made("autotune")
    temporary, started = tmp_path / "temporary", tmp_path / "started"
    temporary.mkdir()
    endless = f"copy (select 1) to '{started}' (format csv); select count(*) from range(1000000) a, range(1000000) b, range(1000000) c"
    env = {**os.environ, "VRAMSCOPE_PYTHON": sys.executable, "TMPDIR": str(temporary)}
    query = subprocess.Popen([vramscope, "query", trace, endless], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    wait_until(started.exists, "the query runs")
    if to == "vramscope alone":
        query.kill()
        assert query.communicate() == (b"", b"")        # the interpreter, which had the same output, has ended too
    else:
        os.killpg(query.pid, signal.SIGINT)
        assert query.communicate() == (b"", b"") and query.returncode == 128 + signal.SIGINT
        assert not list(temporary.iterdir())


def test_the_folder_for_temporary_files_may_have_any_name(made, query, tmp_path):
    trace, truth = made("autotune")
    temporary = tmp_path / "it's [a] *?"
    temporary.mkdir()
    done = query(trace, "select count(*) as n from blocks", "--format", "csv", TMPDIR=str(temporary))
    assert done.stdout == f"n\n{truth['allocs']}\n" and not list(temporary.iterdir())


def test_a_long_result_is_written_piece_by_piece(made, query):
    trace, _ = made("autotune")
    done = query(trace, "select i, i % 7 as j from range(2500) as t(i) order by i", "--format", "json")
    rows = [{"i": i, "j": i % 7} for i in range(2500)]
    assert json.loads(done.stdout) == rows and done.stdout == json.dumps(rows, indent=1) + "\n"
    done = query(trace, "select i from range(2500) as t(i) order by i", "--format", "csv")
    assert done.stdout.split() == ["i", *map(str, range(2500))]
    assert query(trace, "select i from range(2500) as t(i) where i < 0", "--format", "json").stdout == "[]\n"


def test_a_query_replaces_nothing_that_appears_while_it_runs(made, query, tmp_path):
    """The name of the result is a link to something of the user's by the time DuckDB writes."""
    trace, _ = made("autotune")
    victim, out, python = tmp_path / "victim", tmp_path / "out.parquet", tmp_path / "python3"
    victim.write_text("mine")
    python.write_text(f"#!/bin/sh\nln -s {victim} {out}\nexec {sys.executable} \"$@\"\n")
    python.chmod(0o755)
    done = query(trace, "select 1", "--format", "parquet", "-o", out, code=2, python=python)
    assert "exists already" in done.stderr and victim.read_text() == "mine" and out.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "python3", "victim"]
