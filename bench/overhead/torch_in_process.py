"""Step time of a GPT-2-size transformer with and without recording, and with PyTorch's own memory history, taking turns in one process.

Run it under `vramscope run`. Prints JSON: milliseconds a step for each mode, the median ratio to plain of each round and its 95 %
interval. On a machine without a GPU a small model is used and PyTorch's history, which exists for CUDA alone, is left out.

    vramscope run -- python torch_in_process.py [--rounds 20] [--steps 10]
"""
import argparse
import glob
import json
import mmap
import os
import random
import statistics
import struct
import time

import torch
from torch import nn

STOP_FLAG = 48  # offset of spool::Header::stop
GPU = torch.cuda.is_available()
WIDTH, BLOCKS, HEADS, WORDS, BATCH, LENGTH = (768, 12, 12, 50257, 8, 1024) if GPU else (128, 4, 4, 1000, 8, 64)


class Recorder:
    """Pauses and resumes recording in this process."""

    def __init__(self):
        files = glob.glob(f"{os.environ['VRAMSCOPE_SPOOL']}/{os.getpid()}-*.spool")
        with open(files[-1], "r+b") as file:
            self.header = mmap.mmap(file.fileno(), 4096)

    def set(self, on):
        self.header[STOP_FLAG:STOP_FLAG + 4] = struct.pack("<I", 0 if on else 1)

    def events(self):
        return struct.unpack_from("<Q", self.header, 64)[0]


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


def training_step():
    device = "cuda" if GPU else "cpu"
    model = Transformer().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    text = torch.randint(0, WORDS, (BATCH, LENGTH + 1), device=device)

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


def interval(values, rounds=2000):
    """95 % interval of the median, by drawing again."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(rounds))
    return [medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--steps", type=int, default=10)
    asked = arguments.parse_args()
    step = training_step()
    block_ms(step, 10)
    recorder = Recorder()
    history = torch.cuda.memory._record_memory_history if GPU else None
    modes = ["plain", "recorded"] + (["history_python", "history_all"] if GPU else [])
    times = {mode: [] for mode in modes}
    events = 0
    for _ in range(asked.rounds):
        random.shuffle(modes)
        for mode in modes:
            recorder.set(mode == "recorded")
            before = recorder.events()
            if mode.startswith("history"):
                history(stacks=mode.partition("_")[2], max_entries=1_000_000)
            times[mode].append(block_ms(step, asked.steps))
            if mode.startswith("history"):
                history(enabled=None)
            events += recorder.events() - before if mode == "recorded" else 0
    recorder.set(True)
    out = {"torch": torch.__version__, "device": torch.cuda.get_device_name() if GPU else "CPU",
           "events_per_step": round(events / (asked.rounds * asked.steps)), "plain_ms": round(statistics.median(times["plain"]), 3)}
    for mode in sorted(set(modes) - {"plain"}):
        ratios = [t / p for t, p in zip(times[mode], times["plain"])]
        out[f"{mode}_percent"] = round(100 * (statistics.median(ratios) - 1), 2)
        out[f"{mode}_interval_percent"] = [round(100 * (edge - 1), 2) for edge in interval(ratios)]
    print(json.dumps(out))


if __name__ == "__main__":
    main()
