"""The generated traces on which formats are compared, and the programs that write real profiles."""
import os

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")

# A run with a peak far above its steady state, one that ended out of memory, one with a leak, one without marks.
CASES = ["autotune", "killed", "leak", "nomarks"]

TABLES = ["blocks", "events", "steps", "places", "ledger", "findings", "ooms", "samples", "stacks", "settings"]
