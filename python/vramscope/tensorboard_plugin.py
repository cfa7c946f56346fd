"""A tab of TensorBoard with the report of each recorded run in the log directory.

TensorBoard finds the plugin in the installed package. Record into the log directory to see both side by side:

    vramscope run -o logs/today -- python train.py
    tensorboard --logdir logs
"""
from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from . import _files

_MOST_TRACES = 500
_HASH = re.compile(r"script-src ([^;\"]*)")

# The page of a run is a frame of its own: TensorBoard allows no inline script here, and the report brings its own policy.
_MODULE = """
export async function render() {
  const traces = await (await fetch("./traces")).json();
  document.body.style.cssText = "margin:0;display:flex;flex-direction:column;height:100vh;font:14px sans-serif";
  const bar = document.createElement("label");
  bar.style.cssText = "padding:8px";
  bar.textContent = "Run ";
  const choice = document.createElement("select");
  for (const trace of traces) choice.append(new Option(trace, trace));
  bar.append(choice);
  const page = document.createElement("iframe");
  page.title = "vramscope report";
  page.style.cssText = "border:0;flex:1";
  const show = () => { page.src = "./report?trace=" + encodeURIComponent(choice.value); };
  choice.addEventListener("change", show);
  document.body.append(bar, page);
  if (traces.length > 0) show();
}
"""


class VramscopePlugin(base_plugin.TBPlugin):
    """Routes: the module of the tab, the traces in the log directory, and the report of one of them."""

    plugin_name = "vramscope"

    def __init__(self, context: Any) -> None:
        # Without a log directory (--logdir_spec) nothing is shown: the current folder may be any. Absolute, so that no name is an option.
        self._folder = Path(context.logdir).absolute() if context.logdir else None
        self._lock = threading.Lock()
        self._reports: Dict[Path, Tuple[Tuple[int, int], str]] = {}     # by trace: size and time, page

    def get_plugin_apps(self) -> Dict[str, Callable[..., Any]]:
        return {"/index.js": self._module, "/traces": self._list, "/report": self._report}

    def frontend_metadata(self) -> Any:
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="Memory")

    def is_active(self) -> bool:
        return bool(self._traces(1))

    def _traces(self, most: int = _MOST_TRACES) -> List[str]:
        """Relative to the log directory, newest first. No links, which may lead to traces of others, and nothing that is gone by now."""
        found: List[Tuple[float, str]] = []
        for folder, _, names in os.walk(self._folder) if self._folder else ():
            for name in names:
                if name.endswith(".vram"):
                    path = os.path.join(folder, name)
                    with contextlib.suppress(OSError):
                        state = os.lstat(path)
                        if stat.S_ISREG(state.st_mode):
                            found.append((state.st_mtime, os.path.relpath(path, self._folder)))
            if len(found) >= most:
                break
        return [name for _, name in sorted(found, reverse=True)]

    @wrappers.Request.application
    def _module(self, request: Any) -> Any:
        return http_util.Respond(request, _MODULE, "application/javascript")

    @wrappers.Request.application
    def _list(self, request: Any) -> Any:
        return http_util.Respond(request, self._traces(), "application/json")

    @wrappers.Request.application
    def _report(self, request: Any) -> Any:
        name = request.args.get("trace", "")
        if self._folder is None or name not in self._traces():      # nothing else in the file system has an address
            return http_util.Respond(request, "There is no such trace in the log directory.", "text/plain", code=404)
        try:
            page = self._page(self._folder / name)
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            return http_util.Respond(request, said, "text/plain", code=500)
        policy = _HASH.search(page)
        hashes = re.findall(r"'sha256-([^']+)'", policy.group(1)) if policy else []
        return http_util.Respond(request, page, "text/html", csp_scripts_sha256s=hashes)

    def _page(self, trace: Path) -> str:
        state = trace.stat()
        version = state.st_size, state.st_mtime_ns
        with self._lock:
            known = self._reports.get(trace)
            if known and known[0] == version:
                return known[1]
            with tempfile.TemporaryDirectory() as folder:
                output = Path(folder) / "report.html"
                program = _files.find(_files.PROGRAM)
                if program is None:
                    raise OSError("the program vramscope is not installed next to its package")
                subprocess.run([str(program), "report", str(trace), "-o", str(output)], check=True, capture_output=True, text=True)
                page = output.read_text()
            self._reports = {trace: (version, page)}        # one is enough: people look at one run at a time
            return page
