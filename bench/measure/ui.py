"""The page on a trace of 100 M events, and the report of one of 10 M."""
import json
import os
import subprocess
import tempfile
from pathlib import Path

from measure.tree import ROOT, Measured

NAMES = ["ui_answer_ms", "ui_paint_ms", "ui_frame_ms", "ui_page_mb", "report_10m_mb"]
LARGE, MIDDLE = 100_000_000, 10_000_000


def generate(tree, path, events):
    subprocess.run([tree.build / "tracegen", "large", path, f"events={events}"], check=True, stdout=subprocess.DEVNULL)
    return path


def measure(tree):
    # VRAMSCOPE_BENCH_FOLDER keeps the traces (the index of the large one takes 2.3 GB) for the next time.
    kept = os.environ.get("VRAMSCOPE_BENCH_FOLDER")
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        place = Path(kept or folder)
        place.mkdir(parents=True, exist_ok=True)
        traces = {events: place / f"large-{events}.vram" for events in (LARGE, MIDDLE)}
        for events, path in traces.items():
            if not path.exists():
                generate(tree, path, events)
        report = Path(folder) / "report.html"
        subprocess.run([tree.program, "report", traces[MIDDLE], "-o", report], check=True, stdout=subprocess.DEVNULL)
        size = report.stat().st_size / 1e6
        node = subprocess.run([ROOT / "tools/setup.sh", "node"], check=True, capture_output=True, text=True).stdout.strip()
        done = subprocess.run(["npm", "--prefix", ROOT / "ui", "run", "--silent", "bench"], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{node}:{os.environ['PATH']}", "VRAMSCOPE_LARGE_TRACE": str(traces[LARGE]),
                                   "VRAMSCOPE_BUILD": str(tree.build)})
    lines = done.stdout.splitlines()
    print(*(line for line in lines if line.startswith("  ")), sep="\n")
    results = [line for line in lines if line.startswith("RESULT ")]
    if done.returncode or not results:
        raise SystemExit(f"the browser failed:\n{done.stdout}\n{done.stderr}")
    said = json.loads(results[-1].removeprefix("RESULT "))
    return {**{name: Measured(said[name]) for name in said}, "report_10m_mb": Measured(size)}
