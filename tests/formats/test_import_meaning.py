"""Imported profiles: what their source does not say is unknown, not a guess."""
import csv
import io
import os
import pickle
import subprocess

import pytest
from format_cases import PROGRAMS


def test_a_log_without_a_limit_has_no_figure_for_what_was_free(imported, answer, vramscope, run, tmp_path):
    """An RMM log has neither the limit, nor the pool's regions, nor the card's size; what is live is no capacity."""
    file = tmp_path / "rmm.csv"
    file.write_text("Thread,Time,Action,Pointer,Size,Stream\n"
                    "7,00:00:01.000000,allocate,0x7f0000000000,2048,0x0\n7,00:00:02.000000,allocate failure,(nil),100000000000,0x0\n")
    trace = imported(file)
    assert "1 allocation and 0 frees" in run([vramscope, "import", file, "-o", tmp_path / "again.vram"]).stderr
    said = run([vramscope, "oom", trace]).stdout
    assert "how much was free is not known" in said and "short of fitting" not in said
    assert all(word not in said for word in ("0 B of the", "0 B was free", "could take", "that the pool held"))
    event = answer("oom", trace)["events"][0]
    assert event["verdict"] == "unknown" and {event[key] for key in ("free", "largest_free", "short_by", "regions", "limit")} == {0}
    assert event["live"] == 2048 and not any(cause["holds"] or cause["would_fit"] == "no" for cause in event["causes"] if cause["cause"] != "spike")
    finding = next(found for found in answer("summary", trace)["findings"]["findings"] if found["id"] == "oom")
    assert finding["at_stake"] is None and "95,367" not in run([vramscope, "summary", trace]).stdout.replace(finding["title"], "")


@pytest.mark.parametrize("file", ["log.txt", "dump*"])
def test_a_dump_without_ops_does_not_say_what_blocks_were_for(tensorflow_files, imported, answer, file):
    folder, _ = tensorflow_files
    groups = answer("peak", imported(sorted(folder.glob(file))[-1]), "--at", "end", "--by", "category,layer,known,op", "-n", "0")["groups"]
    without_op = {tuple(group["keys"][:3]) for group in groups if group["keys"][3] in ("", "unknown")}
    assert without_op == {("unknown", "", "unknown")}


@pytest.mark.parametrize("size", [-1, -(1 << 62), 1 << 63, (1 << 64) - 512, (1 << 64) + 512, -(1 << 70), "sum"])
@pytest.mark.parametrize("where", ["entry", "block", "segment", "requested"])
def test_impossible_sizes_in_a_snapshot(vramscope, run, tmp_path, where, size):
    """Negative, larger than any memory, or with a sum that does not fit into 64 bits."""
    count, size = (9, 1 << 61) if size == "sum" else (1, size)
    block = {"address": 1 << 20, "size": 512, "requested_size": 512, "state": "active_allocated"}
    segment = {"device": 0, "address": 1 << 20, "total_size": 1024, "blocks": [block]}
    entries = [{"action": "alloc", "addr": i << 30, "size": size if where == "entry" else 512, "stream": 0, "time_us": 5} for i in range(count)]
    change = {"block": {"blocks": [{**block, "size": size} for _ in range(count)]}, "segment": {"total_size": size},
              "requested": {"blocks": [{**block, "requested_size": size} for _ in range(count)]}, "entry": {}}[where]
    file = tmp_path / "hostile.pickle"
    file.write_bytes(pickle.dumps({"segments": [{**segment, **change} for _ in range(count)], "device_traces": [entries]}))
    done = run([vramscope, "import", file, "-o", tmp_path / "x.vram"], code=2)
    assert "no memory has" in done.stderr and done.stderr.count("\n") == 1 and not (tmp_path / "x.vram").exists()


@pytest.fixture(scope="module")
def training(newest_tensorflow, tmp_path_factory):
    """A profile of a Keras training on the CPU, and the sizes of its weights' gradients and of the optimizer's slots, by the model itself."""
    folder = tmp_path_factory.mktemp("training")
    done = subprocess.run([newest_tensorflow, os.path.join(PROGRAMS, "tensorflow_training.py"), folder], capture_output=True, text=True,
                          env={**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "64"})
    assert done.returncode == 0, done.stderr[-3000:]
    return next(folder.glob("**/*.xplane.pb"))


def test_categories_of_an_xplane_are_certain_or_unknown(training, imported, vramscope, run):
    """Three dense layers of 64, 256, 128 and 1 units with a batch of 512: the kind of a gradient shows in its size."""
    table = run([vramscope, "export", imported(training), "--to", "csv", "-o", "-"]).stdout
    said = {}
    for row in csv.DictReader(io.StringIO(table)):
        said.setdefault(row["op"].removeprefix("StatefulPartitionedCall/"), set()).add((row["category"], int(row["requested"])))
    tape = "gradient_tape/sequential_1/"
    # Of the two products of a layer the second is for the weights.
    assert said[tape + "dense_1_2/MatMul/MatMul_1"] == {("gradients", 256 * 128 * 4)}
    assert said[tape + "dense_1_2/MatMul/MatMul"] == {("activation gradients", 512 * 256 * 4)}
    # Nobody differentiates the input: the only product is for the weights, but has the name of the other.
    assert said[tape + "dense_1/MatMul/MatMul"] == {("unknown", 64 * 256 * 4)}
    assert said[tape + "dense_1/BiasAdd/BiasAddGrad"] == {("gradients", 256 * 4)}
    slots = {op: rows for op, rows in said.items() if op.endswith("momentum/Initializer/zeros")}
    assert len(slots) == 6 and all({category for category, _ in rows} == {"optimizer state"} for rows in slots.values()), slots
