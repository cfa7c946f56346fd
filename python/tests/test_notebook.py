"""A real Jupyter kernel runs the cell magic and the live chart."""
import re
import xml.etree.ElementTree as xml
from pathlib import Path

import nbclient
import nbformat

PACKAGE = Path(__file__).resolve().parents[1]

CELLS = [
    "%load_ext vramscope",
    "%%vramscope -o out\n"
    "nothing = 1",
    "import numpy as np, keras, tensorflow as tf, vramscope\n"
    "model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(512), keras.layers.Dense(8)])\n"
    "model.compile('adam', 'mse')\n"
    "x, y = np.zeros((3200, 64), 'float32'), np.zeros((3200, 8), 'float32')\n"
    "%reload_ext vramscope",
    "%%vramscope -o out --device CPU:0\n"
    "history = model.fit(x, y, epochs=3, verbose=0)\n"
    "import gc, time, vramscope.notebook\n"
    "chart, = [o for o in gc.get_objects() if isinstance(o, vramscope.notebook.live) and o._thread.is_alive()]\n"
    "while len(chart._points) < 2: time.sleep(0.01)",
    "print(vramscope_trace.path.name, len([e for e in vramscope_trace.events() if e['event'] == 'alloc']) > 100, len(history.epoch))",
    "%%vramscope -o out --no-chart\n"
    "kept = tf.random.normal([512, 512])\n"
    "1 / 0",
    "%%vramscope --wrong\n"
    "print('not run')",
    "%%vramscope -o out --device GPU:0\n"
    "kept = tf.random.normal([512, 512])",
]


def outputs(cell, kind):
    return [o["data"][kind] for o in cell.outputs if o.output_type in ("display_data", "execute_result") and kind in o["data"]]


def text(cell):
    return "".join(o.get("text", "") for o in cell.outputs if o.output_type == "stream")


def test_magic_and_live_chart(tmp_path, build, vramscope, inject, monkeypatch):
    for name, value in {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "VRAMSCOPE_BUILD": str(build),
                        "PYTHONPATH": str(PACKAGE), "IPYTHONDIR": str(tmp_path / "ipython"), "JUPYTER_RUNTIME_DIR": str(tmp_path / "jupyter")}.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", allow_errors=True,
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    nothing, cells = notebook.cells[1], notebook.cells[2:]

    charts = [xml.fromstring(o) for o in outputs(cells[1], "text/html") if o.startswith("<svg")]
    assert len(charts) == 1                                         # one chart, redrawn in place
    lines = [e.get("points").split() for e in charts[0].iter() if e.tag.endswith("polyline")]
    assert len(lines) == 2 and len(lines[0]) >= 3                   # current and peak, drawn at least three times
    summary, = [o[o.index("<pre"):] for o in outputs(cells[1], "text/html") if "<pre" in o]
    assert re.search(r"\d[\d.,]* [KM]iB", summary) and "&lt;" not in summary.split("\n")[0]

    assert re.fullmatch(r"\S+\.vram True 3\n", text(cells[2]))
    assert any(o.output_type == "error" and o.ename == "ZeroDivisionError" for o in cells[3].outputs)
    assert [o for o in outputs(cells[3], "text/html") if "<pre" in o]               # the cell failed, its trace is there
    assert "%%vramscope: unrecognized arguments: --wrong" in text(cells[4]) and "not run" not in text(cells[4])
    assert "no chart: No matching devices found for 'GPU:0'" in text(cells[5]) and "Traceback" not in text(cells[5])
    assert text(nothing).startswith("%%vramscope: no trace was written") and not any(o.output_type == "error" for o in nothing.outputs)
    assert len(list((tmp_path / "out").glob("*.vram"))) == 3
