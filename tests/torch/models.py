"""Trainings as people write them: nothing in here knows that it is recorded.

    python models.py transformer|compiled|resnet|lightning [DEVICE]
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(256, 256, dtype=torch.bool)))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = (q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        weights = F.softmax(scores.masked_fill(~self.mask[:length, :length], float("-inf")), -1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.norm1, self.norm2 = Attention(width, heads), nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, words=500, width=96, heads=4, blocks=3):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(256, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width)) \
            if stride != 1 or before != width else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, width=16, classes=10):
        super().__init__()
        self.conv1, self.bn1, self.pool = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.MaxPool2d(2)
        stages, before = [], width
        for i in range(4):
            stages += [Residual(before, width << i, 1 if i == 0 else 2), Residual(width << i, width << i, 1)]
            before = width << i
        self.layers, self.fc = nn.Sequential(*stages), nn.Linear(before, classes)

    def forward(self, x):
        x = self.layers(self.pool(F.relu(self.bn1(self.conv1(x)))))
        return self.fc(x.mean((2, 3)))


def transformer(device, compiler=lambda net: net):
    net = compiler(Transformer().to(device))
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(5):
        text = torch.randint(0, 500, (8, 65)).to(device)
        loss = F.cross_entropy(net(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()


def compiled(device):
    transformer(device, torch.compile)


def pictures():
    return torch.utils.data.TensorDataset(torch.randn(80, 3, 32, 32), torch.randint(0, 10, (80,)))


def resnet(device):
    net = ResNet().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for x, y in torch.utils.data.DataLoader(pictures(), batch_size=16, shuffle=True):
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def lightning(device):
    import lightning.pytorch as pl

    class Classifier(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = ResNet()

        def training_step(self, batch, index):
            x, y = batch
            loss = F.cross_entropy(self.net(x), y)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    trainer = pl.Trainer(max_epochs=2, accelerator="gpu" if device == "cuda" else "cpu", devices=1, logger=False,
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Classifier(), torch.utils.data.DataLoader(pictures(), batch_size=16))


if __name__ == "__main__":
    torch.manual_seed(0)
    models = {"transformer": transformer, "compiled": compiled, "resnet": resnet, "lightning": lightning}
    models[sys.argv[1]](sys.argv[2] if sys.argv[2:] else "cpu")
