"""Trains a small model with PyTorch for a few steps: torch_models.py MODEL BATCH [OPTIMIZER] [STEPS] [DEVICE] [LIMIT]. LIMIT: MiB for the pool on a GPU. Prints what
PyTorch counted there."""
import json
import sys

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.path = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))

    def forward(self, x):
        return torch.relu(x + self.path(x))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 64, 2, batch_first=True), nn.Linear(64, 8)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


MODELS = {
    "dense": lambda: (nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64)), (64,)),
    "resnet": lambda: (nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), Residual(16), nn.Conv2d(16, 32, 3, 2, 1), Residual(32), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                     nn.Linear(32, 10)), (3, 32, 32)),
    "transformer": lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 256, batch_first=True), 2, enable_nested_tensor=False), (32, 64)),
    "lstm": lambda: (Recurrent(), (20, 32)),
}


def main(name, batch, optimizer="AdamW", steps="4", device="cpu", limit=None):
    if limit:
        torch.cuda.set_per_process_memory_fraction((int(limit) << 20) / torch.cuda.mem_get_info()[1])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model, shape = MODELS[name]()
    model = model.to(device)
    update = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3)
    for _ in range(int(steps)):
        loss = model(torch.zeros(int(batch), *shape, device=device)).square().mean()
        loss.backward()
        update.step()
        update.zero_grad()
    stats = torch.cuda.memory_stats() if device == "cuda" else {}
    print(json.dumps({"reserved_peak": stats.get("reserved_bytes.all.peak"), "peak": stats.get("allocated_bytes.all.peak")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
