"""Step time of a GPT-2-size transformer with and without recording, and with PyTorch's own memory history, taking turns in one process.

    python bench/overhead/torch_in_process.py [--seconds 60]

Needs PyTorch and the built tree (VRAMSCOPE_BUILD, else build/): it starts itself again under `vramscope run`. Recorded are Python stacks,
modules and categories, as by default. Prints a table, and JSON on the last line: milliseconds a step, the median of each round's
ratio to plain, its 95 % interval. Exit code 1 if the budget (+2 % for the batch of 8 x 1024 tokens on a GPU) is exceeded beyond doubt.
The small batch is bound by the CPU's dispatch of operations: the worst case. On a machine without a GPU a small model is used, and
PyTorch's history, which exists for CUDA alone, is left out.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUDGET_PERCENT = 2.0


def start_again_recorded():
    program = Path(os.environ.get("VRAMSCOPE_BUILD", ROOT / "build")) / "vramscope"
    with tempfile.TemporaryDirectory(prefix="vramscope-bench-") as folder:
        command = [program, "run", "--quiet", "-o", Path(folder) / "out", "--", sys.executable, *sys.argv]
        code = subprocess.run([str(part) for part in command]).returncode
        size = sum(path.stat().st_size for path in (Path(folder) / "out").glob("*.vram"))
        print(f"trace: {size} bytes", file=sys.stderr)
        return code


if __name__ == "__main__" and "VRAMSCOPE_SPOOL" not in os.environ:
    sys.exit(start_again_recorded())

import recorder  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from turns import interval  # noqa: E402
from vramscope._hooks import torch_optimizers  # noqa: E402

GPU = torch.cuda.is_available()
WIDTH, BLOCKS, HEADS, WORDS, LENGTH = (768, 12, 12, 50257, 1024) if GPU else (128, 4, 4, 1000, 64)
BATCHES = {"8 x 1024 tokens": (8, 1024), "1 x 128 tokens": (1, 128)} if GPU else {"8 x 64 tokens": (8, 64)}


class Recorder(recorder.Recorder):
    """Also with the package's hooks at optimizer steps."""

    def set(self, on):
        (torch_optimizers.install if on else lambda _: torch_optimizers.remove())(torch)
        super().set(on)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in self.c_attn(self.ln_1(x)).chunk(3, -1))
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.ln_f, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def training(batch, length):
    device = "cuda" if GPU else "cpu"
    model = Transformer().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    text = torch.randint(0, WORDS, (batch, length + 1), device=device)

    def step():
        with torch.autocast(device, dtype=torch.bfloat16, enabled=GPU):
            loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def block_ms(step, steps):
    if GPU:
        torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        loss = step()
    loss.item()
    return (time.perf_counter() - began) / steps * 1e3


def measure(step, recorder, seconds):
    """{mode: milliseconds a step, in each round}, and events in a recorded step."""
    recorder.set(True)
    block_ms(step, 20)  # names of layers, kernels, caches
    steps = max(3, round(400 / block_ms(step, 5)))  # blocks of 0.4 s
    history = torch.cuda.memory._record_memory_history if GPU else None
    modes = ["plain", "recorded"] + (["history python", "history all"] if GPU else [])
    times = {mode: [] for mode in modes}
    events = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times["plain"]) < 5:
        for mode in random.sample(modes, len(modes)):
            recorder.set(mode == "recorded")
            if mode.startswith("history"):
                history(stacks=mode.partition(" ")[2], max_entries=1_000_000)
            block_ms(step, 1)
            before = recorder.events()
            times[mode].append(block_ms(step, steps))
            made = recorder.events() - before
            if (made > 10 * steps) != (mode == "recorded"):
                sys.exit(f"{made} events in {steps} steps of mode {mode}: the spool's header is not where this program thinks")
            events += made if mode == "recorded" else 0
            if mode.startswith("history"):
                history(enabled=None)
    recorder.set(True)
    return times, round(events / (len(times["plain"]) * steps))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=60, help="for each batch size")
    asked = arguments.parse_args()
    random.seed(1)
    out = {"torch": torch.__version__, "device": torch.cuda.get_device_name() if GPU else "CPU", "batches": {}}
    print(f"PyTorch {out['torch']}, {out['device']}")
    recorder, exceeded = None, False
    for name, (batch, length) in BATCHES.items():
        step = training(batch, length)
        block_ms(step, 3)
        recorder = recorder or Recorder()
        times, events = measure(step, recorder, asked.seconds)
        plain = statistics.median(times["plain"])
        result = out["batches"][name] = {"plain_ms": round(plain, 3), "events_per_step": events, "rounds": len(times["plain"])}
        print(f"{name}: {plain:.2f} ms a step, {events} events a step, {len(times['plain'])} rounds")
        for mode in times:
            if mode == "plain":
                continue
            ratios = [t / p for t, p in zip(times[mode], times["plain"])]
            percent = 100 * (statistics.median(ratios) - 1)
            low, high = (100 * (edge - 1) for edge in interval(ratios))
            result[mode] = {"percent": round(percent, 2), "interval": [round(low, 2), round(high, 2)]}
            print(f"  {mode:15} {percent:+6.2f} %   ({low:+.2f} to {high:+.2f})")
            exceeded |= GPU and mode == "recorded" and length == LENGTH and low > BUDGET_PERCENT
        del step
    print(json.dumps(out))
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
