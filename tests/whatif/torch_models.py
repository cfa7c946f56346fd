"""Trains a small model with PyTorch for a few steps: torch_models.py MODEL BATCH [OPTIMIZER] [STEPS] [DEVICE] [LIMIT] [CHANGE=VALUE].
LIMIT: MiB for the pool on a GPU. Changes: accumulate=N, precision=bf16, checkpoint=MODULE,MODULE, compiled=1. Length of the sequence for
"attention": length=N. Prints what PyTorch counted there."""
import functools
import json
import sys

import torch
import torch.utils.checkpoint
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


class Attention(nn.Module):
    """Keeps its matrices of weights, which grow with the square of the length."""
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return x + self.out(torch.softmax(q @ k.transpose(1, 2) / 32 ** 0.5, -1) @ v)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.low, self.up, self.last = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1), nn.ConvTranspose2d(32, 16, 2, 2), nn.Conv2d(32, 1, 1)

    def forward(self, x):
        down = torch.relu(self.down(x))
        low = torch.relu(self.low(torch.max_pool2d(down, 2)))
        return self.last(torch.cat([down, self.up(low)], 1))


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.code, self.decode = nn.Linear(784, 256), nn.Linear(256, 32), nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 784))

    def forward(self, x):
        mean, spread = self.code(torch.relu(self.hidden(x))).chunk(2, -1)
        return self.decode(mean + torch.exp(spread / 2) * torch.randn_like(mean))


def block(width):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


MODELS = {
    "blocks": lambda: (nn.Sequential(*(block(128) for _ in range(4))), (128,)),
    "dense": lambda: (nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64)), (64,)),
    "resnet": lambda: (nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), Residual(16), nn.Conv2d(16, 32, 3, 2, 1), Residual(32), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                     nn.Linear(32, 10)), (3, 32, 32)),
    "transformer": lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 256, batch_first=True), 2, enable_nested_tensor=False), (32, 64)),
    "lstm": lambda: (Recurrent(), (20, 32)),
    "attention": lambda: (nn.Sequential(Attention(), Attention()), (64, 32)),
    "unet": lambda: (UNet(), (1, 32, 32)),
    "vae": lambda: (VAE(), (784,)),
}


def recompute(module):
    module.forward = functools.partial(torch.utils.checkpoint.checkpoint, module.forward, use_reentrant=False)


def optimizer_named(name, parameters):
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9) if name == "momentum" else getattr(torch.optim, name)(parameters, lr=1e-3)


def main(name, batch, optimizer="AdamW", steps="4", device="cpu", limit=None, accumulate="1", precision="fp32", checkpoint="", compiled="", length=None):
    if limit:
        torch.cuda.set_per_process_memory_fraction((int(limit) << 20) / torch.cuda.mem_get_info()[1])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model, shape = MODELS[name]()
    model = model.to(device)
    shape = (int(length), *shape[1:]) if length else shape
    for module in filter(None, checkpoint.split(",")):
        recompute(model.get_submodule(module))
    model = torch.compile(model) if compiled else model
    update = optimizer_named(optimizer, model.parameters())
    parts = int(accumulate)
    for _ in range(int(steps)):
        for _ in range(parts):
            with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
                loss = model(torch.zeros(int(batch) // parts, *shape, device=device)).float().square().mean() / parts
            loss.backward()
        update.step()
        update.zero_grad()
    stats = torch.cuda.memory_stats() if device == "cuda" else {}
    print(json.dumps({"reserved_peak": stats.get("reserved_bytes.all.peak"), "peak": stats.get("allocated_bytes.all.peak")}))


if __name__ == "__main__":
    main(*(word for word in sys.argv[1:] if "=" not in word), **dict(word.split("=") for word in sys.argv[1:] if "=" in word))
