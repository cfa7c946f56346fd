"""Programs with one problem each. The command line says how many steps, and how the program ends. The last line is what the program knows itself."""
import json
import os
import signal
import sys

import torch


def train(steps, after_step):
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(64, 256)).pow(2).mean()
        loss.backward()
        optimizer.step()
        after_step(step)


history = []


def keep(step):
    history.append(torch.full((512, 512), float(step)))     # the defect: 1 MiB per step


def end(how):
    print(json.dumps({"kept": len(history)}), flush=True)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "failed":
        raise SystemExit(3)


if __name__ == "__main__":
    trouble, how = sys.argv[1:]
    train(40, keep if trouble == "leak" else lambda step: None)
    end(how)
