"""In Jupyter: `%load_ext vramscope`, then

    %%vramscope -o runs/today
    model.fit(...)

records the cell, draws the memory while it runs, and shows the summary when it is done; the trace is then `vramscope_trace`.
"""
from __future__ import annotations

import argparse
import base64
import html
import shlex
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, List, NoReturn, Optional, Tuple

from . import _chart, _memory, attach
from .trace import Trace

_EVERY_S = 0.5
_MOST_POINTS = 400
_REPORT_BUDGET = "1MB"  # it becomes part of the notebook
# A frame knows the colors of the system only, not those that were chosen in JupyterLab or VS Code: the notebook tells it. Where
# scripts of an output do not run, the report has the system's colors.
_TELL_THEME = """<script>(() => {
  const frame = document.currentScript.previousElementSibling;
  const dark = () => document.body.dataset.jpThemeLight === "false" || document.body.classList.contains("vscode-dark");
  const known = () => "jpThemeLight" in document.body.dataset || /vscode-/.test(document.body.className);
  const tell = () => { if (known()) frame.contentWindow?.postMessage({ vramscopeTheme: dark() ? "dark" : "light" }, "*"); };
  const watch = new MutationObserver(() => frame.isConnected ? tell() : watch.disconnect());
  // Where an output that is scrolled away leaves the document, its frame loads again when it is back.
  const follow = () => { tell(); watch.observe(document.body, { attributes: true, attributeFilter: ["class", "data-jp-theme-light"] }); };
  frame.addEventListener("load", follow);
  follow();
})()</script>"""


def _default_device() -> Optional[str]:
    """The first device with memory counters."""
    for name in ("GPU:0", "CPU:0"):
        try:
            _memory.memory_info(name)
        except ValueError:
            continue
        return name
    return None


class live:
    """`with vramscope.notebook.live():` draws current and peak memory below the cell while the block runs."""

    def __init__(self, device: Optional[str] = None, every: float = _EVERY_S) -> None:
        if not isinstance(every, (int, float)) or not 0 < every <= threading.TIMEOUT_MAX:
            raise ValueError(f"every={every!r}: expected the seconds between two updates, greater than 0")
        if device is not None:
            _memory.parse_device(device)
        self._device, self._every = device, every
        self._points: List[Tuple[float, int, int]] = []
        self._why_not = ""
        self._stop = threading.Event()
        self._handle: Any = None
        self._thread = threading.Thread(target=self._run, name="vramscope-chart", daemon=True)

    def __enter__(self) -> "live":
        from IPython.display import HTML, display
        self._began = time.monotonic()
        self._handle = display(HTML(self._svg()), display_id=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._draw()
        if self._why_not and not self._points:
            print(f"no chart: {self._why_not}", file=sys.stderr)

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self._draw()

    def _draw(self) -> None:
        from IPython.display import HTML
        self._device = self._device or _default_device()
        if self._device is None:
            return                                  # no framework has started yet
        try:
            info = _memory.memory_info(self._device)
        except ValueError as error:                 # no framework has started yet, or there is no such device
            self._why_not = str(error)
            return
        self._points.append((time.monotonic() - self._began, info.current, info.peak))
        if len(self._points) > _MOST_POINTS:        # halved: the whole run stays in view
            self._points = self._points[::2]
        self._handle.update(HTML(self._svg()))

    def _svg(self) -> str:
        series = {"current": [(t, current) for t, current, _ in self._points], "peak": [(t, peak) for t, _, peak in self._points]}
        return _chart.lines(f"Memory of {self._device or 'the device'}", series, "seconds")


def _report(trace: Trace) -> Optional[bytes]:
    """The page of the report, or None if there can be none: then the text says why."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        try:
            trace.text("report", "-o", str(page), "--report-budget", _REPORT_BUDGET)
            return page.read_bytes()
        except (OSError, ValueError):
            return None


def answer_html(trace: Trace) -> str:
    """Shows the report as rich output, and the summary as text for viewers that show no frames."""
    summary = html.escape(trace.text("summary"))
    page = _report(trace)
    # Not srcdoc: such a page has no address of its own, and the report keeps its state in the address.
    frame = "" if page is None else (
        f"<iframe title='vramscope report' style='width:100%;height:720px;border:1px solid #8888;border-radius:8px' "
        f"src='data:text/html;base64,{base64.b64encode(page).decode()}'></iframe>{_TELL_THEME}")
    text = f"<pre style='line-height:1.3;white-space:pre;overflow-x:auto'>{summary}</pre>"
    return f"{frame}<details{' open' if page is None else ''}><summary>Summary as text</summary>{text}</details>"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)               # a notebook must not be left


def _arguments(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%%vramscope", add_help=False)
    parser.add_argument("-o", "--output", default="vramscope-runs/notebook")
    parser.add_argument("--device")
    parser.add_argument("--stacks", default="python", choices=["python", "native", "both", "none"])
    parser.add_argument("--no-chart", action="store_true")
    return parser.parse_args(shlex.split(line))


def _record(shell: Any, cell: str, wanted: argparse.Namespace) -> Path:
    chart = None if wanted.no_chart else live(wanted.device)
    attach.start(wanted.output, wanted.stacks)
    try:
        if chart is not None:
            chart.__enter__()
        try:
            shell.run_cell(cell)                # what was recorded until an error is kept
        finally:
            if chart is not None:
                chart.__exit__()
    finally:
        path = attach.stop()
    return path


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext vramscope`"""

    def magic(line: str, cell: str) -> None:
        from IPython.display import display
        try:
            wanted = _arguments(line)
        except ValueError as error:
            print(f"%%vramscope: {error}", file=sys.stderr)
            return
        try:
            path = _record(shell, cell, wanted)
        except (RuntimeError, ValueError) as error:     # ours, and one line is enough: the cell shows its own errors
            print(f"%%vramscope: {error}", file=sys.stderr)
            return
        trace = Trace(path)
        shell.push({"vramscope_trace": trace})
        display(trace)

    shell.register_magic_function(magic, "cell", "vramscope")
