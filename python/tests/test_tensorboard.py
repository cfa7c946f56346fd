"""Our event files, read by the project's own readers."""
import importlib
import struct

import pytest

from vramscope import tensorboard


def test_crc32c_check_value():
    assert tensorboard.crc32c(b"123456789") == 0xE3069283          # the check value of CRC-32C (RFC 3720 has the same polynomial)
    assert tensorboard.crc32c(bytes(32)) == 0x8A9136AA             # RFC 3720, B.4: 32 bytes of zeroes


def test_tensorboard_reads_it(tmp_path):
    reader = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    with tensorboard.Writer(tmp_path) as writer:
        for step in range(200):
            writer.add({"memory/GPU:0/peak (MiB)": (2**33 + 256 * step + 1) / 2**20, "memory/ä": -step, "none": None}, step)
    events = reader.EventAccumulator(str(tmp_path), size_guidance={reader.TENSORS: 0})
    events.Reload()
    assert set(events.Tags()["tensors"]) == {"memory/GPU:0/peak (MiB)", "memory/ä"}
    read = events.Tensors("memory/GPU:0/peak (MiB)")
    # TensorBoard's data server reads nothing but float32: 8 GiB are exact to 512 bytes.
    nearest = lambda value: struct.unpack("<f", struct.pack("<f", value))[0]
    assert [(e.step, e.tensor_proto.float_val[0]) for e in read] == [(s, nearest((2**33 + 256 * s + 1) / 2**20)) for s in range(200)]
    assert events.SummaryMetadata("memory/ä").plugin_data.plugin_name == "scalars"


def test_tensorflow_reads_it(run_python, python, tmp_path):
    with tensorboard.Writer(tmp_path / "logs") as writer:
        writer.add({"a": 1.5}, 7)
        writer.add({"a": 2.5, "b": 3.0}, 2**40)
    answer = run_python(python, f"""
import json, tensorflow as tf
out = []
for event in tf.compat.v1.train.summary_iterator({str(writer.path)!r}):
    out.append([event.step, event.file_version, {{v.tag: float(tf.make_ndarray(v.tensor)) for v in event.summary.value}}])
print(json.dumps(out))
""").answer
    assert answer == [[0, "brain.Event:2", {}], [7, "", {"a": 1.5}], [2**40, "", {"a": 2.5, "b": 3.0}]]


def test_each_trace_is_written_inside_the_folder(tmp_path, monkeypatch):
    """The names of the traces come with the folder, which may be somebody else's."""
    run, board = tmp_path / "run", tmp_path / "board" / "today"
    run.mkdir()
    for name in ("rank0.vram", "..vram", "...vram", ".vram", "....vram"):
        (run / name).write_bytes(b"")
    monkeypatch.setattr(tensorboard, "_write_process", lambda trace, folder: folder)
    folders = [folder.resolve() for folder in tensorboard.write_trace(run, board)]
    assert len(set(folders)) == 5 and all(folder.parent == board.resolve() for folder in folders), folders


LOGGER = """
import io, json, time
import tensorflow as tf
import vramscope.tf as vtf

text = io.StringIO()
with vtf.memory_logger(every=0.02, to="memory.csv") as to_file, vtf.memory_logger(every=0.02, to=text) as to_text, \\
        vtf.memory_logger(every=0.02, to="tensorboard:logs") as to_board, vtf.memory_logger(every=100_000, to=(seen := []).append):
    kept = []
    for _ in range(20):
        kept.append(tf.random.normal([256, 1024]))
        before = [(logger, logger.entries) for logger in (to_file, to_text, to_board)]
        while any(logger.entries == entries for logger, entries in before):
            time.sleep(0.001)
errors = []
for arguments in ({"every": 0}, {"to": "memory.xls"}):
    try:
        vtf.memory_logger(**arguments)
    except ValueError as error:
        errors.append(str(error))
print(json.dumps({"lines": text.getvalue().splitlines(), "entries": [to_file.entries, to_text.entries], "seen": len(seen), "errors": errors}))
"""


def test_memory_logger(run_python, python, tmp_path):
    answer = run_python(python, LOGGER).answer
    rows = [line.split(",") for line in (tmp_path / "memory.csv").read_text().splitlines()]
    current = [int(row[rows[0].index("current")]) for row in rows[1:]]
    assert len(current) == answer["entries"][0] >= 20
    assert current[-1] - current[0] >= 20 * 256 * 1024 * 4 and len(set(current)) >= 5       # it grew while it was watched
    assert len(answer["lines"]) == answer["entries"][1] and " current " in answer["lines"][0]
    assert answer["seen"] == 2 and len(answer["errors"]) == 2
    reader = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(tmp_path / "logs"), size_guidance={reader.TENSORS: 0})
    events.Reload()
    values = {tag.rpartition("/")[2]: {event.step: event.tensor_proto.float_val[0] for event in events.Tensors(tag)}
              for tag in events.Tags()["tensors"]}
    assert {"current (MiB)", "peak (MiB)", "pool (MiB)", "cached (MiB)", "largest free block (MiB)", "host (MiB)", "fragmentation"} <= set(values)
    cached, free = values["cached (MiB)"], values["largest free block (MiB)"]
    assert values["fragmentation"] == {step: pytest.approx(1 - free[step] / cached[step] if cached[step] else 0, abs=2**-22) for step in cached}
    assert len(set(values["fragmentation"].values())) > 1
