"""Fifty clients that ask one server about a trace of 10 M events, each its next question as soon as it has the answer to the last."""
import http.client
import random
import re
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from measure.tree import Measured

NAMES = ["serve_clients_ms"]
EVENTS, CLIENTS, SECONDS = 10_000_000, 50, 20
FILTER = "size%3E1MiB"


def question(draw):
    """What the page asks while somebody looks around: another instant, another tile, another table."""
    at = draw.choice(["peak", "steady", "end", f"{draw.uniform(0, 5):.6f}s"])
    tile = f"level={draw.randint(12, 22)}&tile={draw.randint(0, 3)}"
    return draw.choice([
        "overview?trace=0", "steps?trace=0", "leaks?trace=0", "ooms?trace=0",
        f"stack?trace=0&by=category&{tile}", f"stack?trace=0&by=layer&{tile}", f"stack?trace=0&by=category&filter={FILTER}&{tile}",
        f"tracks?trace=0&{tile}", f"marks?trace=0&{tile}",
        f"instant?trace=0&at={at}", f"peak?trace=0&at={at}&open=category,layer,op,line", f"layers?trace=0&at={at}", f"map?trace=0&at={at}",
    ])


def client(port, token, seed, end, waits, wrong):
    draw, connection = random.Random(seed), http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while time.monotonic() < end:
        asked = question(draw)
        began = time.monotonic()
        connection.request("GET", f"/api/{asked}", headers={"X-Vramscope-Token": token, "Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        answer.read()
        waits.append(time.monotonic() - began)
        if answer.status != 200:
            wrong.append(f"{answer.status} for {asked}")
    connection.close()


def measure(tree):
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        trace = Path(folder) / "large.vram"
        subprocess.run([tree.build / "tracegen", "large", trace, f"events={EVENTS}"], check=True, stdout=subprocess.DEVNULL)
        server = subprocess.Popen([tree.program, "serve", trace], stdout=subprocess.PIPE, text=True)
        try:
            port, token = re.search(r":(\d+)/#token=(\S+)", server.stdout.readline()).groups()
            waits, wrong = [], []
            # What the server builds on the first question of a kind is the price of opening; bench/measure/ui.py shows it.
            client(int(port), token, 0, time.monotonic() + 10, [], wrong)
            end = time.monotonic() + SECONDS
            clients = [threading.Thread(target=client, args=(int(port), token, seed, end, waits, wrong)) for seed in range(1, CLIENTS + 1)]
            for thread in clients:
                thread.start()
            for thread in clients:
                thread.join()
        finally:
            server.terminate()
            server.wait(60)
    if wrong or not waits:
        raise SystemExit(f"{len(wrong)} answers failed, the first: {wrong[:1]}")
    waits.sort()
    print(f"    {len(waits)} answers, half of them within {waits[len(waits) // 2] * 1000:.0f} ms, the slowest {waits[-1] * 1000:.0f} ms")
    return {"serve_clients_ms": Measured(waits[int(len(waits) * 0.99)] * 1000)}
