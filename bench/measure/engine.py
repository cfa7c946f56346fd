"""The analysis engine on generated traces of 1, 10 and 100 million events (bench/engine). VRAMSCOPE_BENCH_EVENTS chooses another largest number."""
import json
import os
import subprocess
import tempfile

from measure.tree import Measured

NAMES = ["engine_first_open_s", "engine_later_open_s", "engine_query_ms", "engine_resident_gib", "engine_wrong_answers", "engine_growth"]


def measure(tree):
    largest = int(os.environ.get("VRAMSCOPE_BENCH_EVENTS", 100_000_000))
    results = []
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        for events in (largest // 100, largest // 10, largest):
            done = subprocess.run([tree.build / "bench/engine/bench_engine", str(events), folder], stdout=subprocess.PIPE, text=True)
            print(done.stdout)
            results.append(json.loads(done.stdout.splitlines()[-1]))
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
    small, large = results[0], results[-1]
    return {
        "engine_first_open_s": Measured(large["first_open_s"]),
        "engine_later_open_s": Measured(large["later_open_s"]),
        "engine_query_ms": Measured(max(large["query_p99_ms"].values())),
        "engine_resident_gib": Measured(large["resident_gib"]),
        "engine_wrong_answers": Measured(sum(r["wrong"] for r in results)),
        "engine_growth": Measured(large["processor_ns_an_event"] / small["processor_ns_an_event"]),
    }
