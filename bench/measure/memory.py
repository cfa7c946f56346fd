"""Memory that recording adds to the process."""
import tempfile

from measure.tree import Measured

NAMES = ["library_memory"]
PAIRS, OP_NAMES, PAUSE_US = 500_000, 5_000, 500  # about half a million events a second, as many op names as in a large model


def measure(tree):
    plain = tree.events(PAIRS, OP_NAMES, pause_us=PAUSE_US)[0]
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        run = (tree.program, "run", "--quiet", "-o", folder, "--")
        recorded = tree.events(PAIRS, OP_NAMES, prefix=run, pause_us=PAUSE_US)[0]
    return {"library_memory": Measured((recorded["resident_kib"] - plain["resident_kib"]) / 1024)}
