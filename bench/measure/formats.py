"""Speed and memory of `vramscope export` in every format that streams all events, and of `vramscope import` of a PyTorch snapshot, in processor time."""
import os
import subprocess
import tempfile
from pathlib import Path

from measure.tree import Measured

NAMES = ["export_ns_per_event", "export_resident_mib", "import_ns_per_byte", "import_resident_per_byte"]
EVENTS = 1_000_000
FORMATS = {"arrow": ["--table", "events"], "chrome": ["--full"], "csv": ["--table", "events"], "jsonl": ["--table", "events"],
           "parquet": ["--table", "events"], "torch-snapshot": [], "xplane": []}


def used(command):
    """Seconds of processor time, and the most bytes that were resident."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measure(tree):
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as name:
        folder = Path(name)
        trace = folder / "training.vram"
        subprocess.run([tree.build / "tracegen", "clean", trace, "seed=7", f"events={EVENTS}"], check=True, stdout=subprocess.DEVNULL)
        exports = {}
        for to, options in FORMATS.items():
            seconds, resident = exports[to] = used([tree.program, "export", trace, "--to", to, *options, "-o", folder / f"out.{to}"])
            print(f"    {to}: {EVENTS / seconds / 1e6:.1f} M events/s, {resident / 2**20:.0f} MiB resident")
        snapshot = folder / "out.torch-snapshot"
        size = snapshot.stat().st_size
        seconds, resident = used([tree.program, "import", snapshot, "-o", folder / "imported.vram"])
        print(f"    import of a snapshot of {size / 1e6:.0f} MB: {size / seconds / 1e6:.0f} MB/s, {resident / 2**20:.0f} MiB resident")
    return {
        "export_ns_per_event": Measured(max(seconds for seconds, _ in exports.values()) / EVENTS * 1e9),
        "export_resident_mib": Measured(max(resident for _, resident in exports.values()) / 2**20),
        "import_ns_per_byte": Measured(seconds / size * 1e9),
        "import_resident_per_byte": Measured(resident / size),
    }
