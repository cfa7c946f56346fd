// What runs a query: DuckDB's Python package, in an interpreter of its own. Arguments: folder of the Parquet files, format,
// output, bytes of memory and of disk for DuckDB (memory_limit.h), SQL.
#pragma once

namespace vramscope::cli {

inline constexpr int kNoDuckDb = 3, kTooLarge = 4;  // its exit codes without the package, and with less than the query needs

// For python_script().
inline constexpr const char* kQueryScript = R"PY(
import signal
# Both end it at once, and without a traceback.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    import duckdb
except ImportError:
    sys.exit(3)
import csv, decimal, glob, itertools, json, math, os, re
folder, form, output, memory, disk, sql = sys.argv[1:]
mib = int(memory) >> 20
mib_per_thread = 128  # a sort with more threads runs out of memory before it spills
threads = max(1, min(os.cpu_count() or 1, mib // mib_per_thread))
bounds = {"memory_limit": f"{mib}MiB", "max_temp_directory_size": f"{int(disk) >> 20}MiB", "threads": str(threads)}
# What does not fit into memory would otherwise go to .tmp in the current folder, wherever that leads.
alone = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "temp_directory": folder}
base = duckdb.connect(config={**bounds, **alone})
base.execute("set enable_progress_bar = false")  # it would be part of the output

def printable(value):
    # Names come from the trace: no escape sequences, and no commands to a CI system: as the tables of other verbs.
    text = "" if value is None else str(value)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    text = re.sub("#(?=#)", r"\\x23", text)
    return re.sub("^( *):(?=:)", r"\1\\x3a", text)

def as_json(value):
    # JSON has no infinities, and decimals of SQL are numbers.
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): as_json(each) for key, each in value.items()}
    return [as_json(each) for each in value] if isinstance(value, (list, tuple)) else value

def as_field(value):
    # A spreadsheet would take it for a formula.
    return "'" + value if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value

place = glob.escape(folder)
quoted = place.replace("'", "''")
for table in sorted({os.path.basename(file).rsplit("-", 1)[0] for file in glob.glob(place + "/*.parquet")}):
    base.execute(f"create view {table} as select * from read_parquet('{quoted}/{table}-*.parquet')".replace("//", "/"))

def run():
    relation = base.sql(sql) if form == "parquet" else base.execute(sql)
    if relation is None or relation.description is None:
        raise duckdb.Error("the query has no result")
    if form == "parquet":
        relation.write_parquet(output)
    else:
        {"json": show_json, "csv": show_csv, "table": show_table}[form]([column[0] for column in relation.description], rows_of(relation))

def rows_of(relation):
    # A few at a time: all of them may be more than fits into memory.
    while rows := relation.fetchmany(1000):
        yield from rows

def show_json(names, rows):
    end = "[]"
    for row in rows:
        print("[" if end == "[]" else ",", end=json.dumps([dict(zip(names, map(as_json, row)))], default=str, indent=1)[1:-2])
        end = "\n]"
    print(end)

def show_csv(names, rows):
    class Harmless:  # a terminal obeys what a name in a trace tells it to do
        def write(self, text):
            sys.stdout.write("\n".join(map(printable, text.split("\n"))))
    table = csv.writer(Harmless() if sys.stdout.isatty() else sys.stdout, lineterminator="\n")
    table.writerow(names)
    table.writerows([as_field(value) for value in row] for row in rows)

def kept(rows):
    # Counted, not left to the allocator: libraries crash where it fails.
    room, all = int(memory), []
    for row in rows:
        room -= sys.getsizeof(row) + sum(map(sys.getsizeof, row))
        if room < 0:
            raise MemoryError
        all.append(row)
    return all

def show_table(names, rows):
    rows = kept(rows)
    names = [printable(name) for name in names]
    widths = [max([len(name), *(len(printable(row[i])) for row in rows)]) for i, name in enumerate(names)]
    right = [all(isinstance(row[i], (int, float)) or row[i] is None for row in rows) for i in range(len(names))]
    for row in itertools.chain([names], rows):
        print("  ".join(cell.rjust(width) if to_right else cell.ljust(width)
                        for cell, width, to_right in zip(map(printable, row), widths, right)).rstrip())

try:
    run()
except (MemoryError, duckdb.OutOfMemoryException):
    sys.exit(4)
except duckdb.Error as error:
    # Without the part that points at a place in the SQL, which takes several lines; with the names that may have been meant.
    said = str(error).split("\nLINE ")[0]
    print("vramscope: query: " + printable(" ".join(said.split())), file=sys.stderr)
    sys.exit(2)
)PY";

}  // namespace vramscope::cli
