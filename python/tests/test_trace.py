"""vramscope.open: the verbs' answers and Arrow tables, read by pyarrow."""
import gc
import subprocess

import pyarrow
import pytest

import vramscope as package
from vramscope import _arrow


def test_arrow_table_is_read_by_pyarrow():
    rows = [{"n": 1, "text": "x", "real": 1.5, "flag": True}, {"n": None, "text": "ü", "real": 2, "flag": False},
            {"n": -(2**63), "text": None, "real": None, "flag": None}]
    table = pyarrow.table(_arrow.Table(rows))
    assert table.to_pylist() == rows
    assert [str(field.type) for field in table.schema] == ["int64", "string", "double", "bool"]
    large = _arrow.Table([{"i": i, "text": f"row {i}"} for i in range(10_000)])
    assert pyarrow.table(large)["text"].to_pylist() == [f"row {i}" for i in range(10_000)]
    assert pyarrow.table(_arrow.Table([])).num_rows == 0
    del table
    gc.collect()
    assert not _arrow._kept                     # everything was released


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, build, python, vramscope, inject):
    import os
    folder = tmp_path_factory.mktemp("recorded")
    script = folder / "script.py"
    script.write_text("import numpy as np, keras\n"
                      "model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, name='wide'), keras.layers.Dense(8)])\n"
                      "model.compile('adam', 'mse')\n"
                      "model.fit(np.zeros((320, 64), 'float32'), np.zeros((320, 8), 'float32'), epochs=2, verbose=0)\n")
    environment = {**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([str(vramscope), "run", "-q", "-o", str(folder / "run"), "--", str(python), str(script)], check=True, env=environment,
                   capture_output=True, timeout=600)
    trace, = (folder / "run").glob("*.vram")
    return trace


def test_verbs_and_tables(recorded, monkeypatch, build):
    monkeypatch.setenv("VRAMSCOPE_BUILD", str(build))
    trace = package.open(recorded)
    steps = trace.table("steps")
    assert len(steps) == 20 and pyarrow.table(steps).num_rows == 20
    events = trace.table("events")
    assert "alloc" in events.columns["event"] and pyarrow.table(events).num_rows == len(events)
    assert "wide" in str(trace.layers()) and trace.text("summary").strip()


def test_a_name_is_not_an_option(tmp_path, monkeypatch, build):
    subprocess.run([build / "tracegen", "clean", tmp_path / "--help.vram"], check=True, capture_output=True)
    monkeypatch.setenv("VRAMSCOPE_BUILD", str(build))
    monkeypatch.chdir(tmp_path)
    trace = package.open("--help.vram")
    assert trace.peak()["total"] > 0 and trace.text("summary").strip()
    assert next(iter(trace.events()))["event"]


def test_errors_are_clear(tmp_path, monkeypatch, build):
    monkeypatch.setenv("VRAMSCOPE_BUILD", str(build))
    with pytest.raises(FileNotFoundError, match="none.vram: no such file or folder"):
        package.open(tmp_path / "none.vram")
    (tmp_path / "bad.vram").write_bytes(b"not a trace")
    with pytest.raises(ValueError, match="bad.vram"):
        package.open(tmp_path / "bad.vram").peak()
