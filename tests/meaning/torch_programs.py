"""Trainings of a few steps in PyTorch that say what their memory is for.

    torch_programs.py cpu|cuda mlp cnn resnet ...
"""
import copy
import sys

import torch
from torch import nn
from torch.nn import functional as F

from claims import run_each
from torch_oracle import Oracle

STEPS = 8
DEVICE = sys.argv[1]


def train(model, batch, loss_of, optimizer=torch.optim.Adam):
    """The loop that most programs have."""
    model.to(DEVICE)
    oracle, optimizer = Oracle(model), optimizer(model.parameters())
    for _ in range(STEPS):
        inputs = [part.to(DEVICE) for part in batch()]
        oracle.inputs(*inputs)
        with oracle.forward():
            loss = loss_of(model, *inputs)
        optimizer.zero_grad()
        oracle.backward(loss)
        oracle.step(optimizer)
        del loss, inputs
    return oracle


def classified(model, x, y):
    return F.cross_entropy(model(x), y)


def pictures(batch=32, size=32, classes=10):
    return lambda: (torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,)))


def mlp():
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 100))
    return train(model, lambda: (torch.randn(256, 512), torch.randint(0, 100, (256,))), classified)


def cnn():
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
                          nn.Linear(64 * 14 * 14, 128), nn.ReLU(), nn.Linear(128, 10))
    return train(model, pictures(), classified)


class Residual(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.shortcut = nn.Conv2d(before, width, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


def resnet():
    model = nn.Sequential(Residual(3, 32, 1), Residual(32, 64, 2), Residual(64, 128, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    return train(model, pictures(), classified, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))


def transformer():
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    model = nn.Sequential(nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 2), nn.Linear(128, 1000))
    del layer       # the encoder has copies of it
    return train(model, lambda: (torch.randint(0, 1000, (16, 64)), torch.randint(0, 1000, (16, 64))),
                 lambda net, x, y: F.cross_entropy(net(x).flatten(0, 1), y.flatten()), torch.optim.AdamW)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2))


class GptBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, 4), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, words=4000, width=128, blocks=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.blocks, self.norm = nn.ModuleList(GptBlock(width) for _ in range(blocks)), nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt():
    """Its logits are larger than its parameters."""
    return train(Gpt(), lambda: (torch.randint(0, 4000, (16, 64)), torch.randint(0, 4000, (16, 64))),
                 lambda net, x, y: F.cross_entropy(net(x).flatten(0, 1), y.flatten()), torch.optim.AdamW)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.head = nn.Embedding(2000, 128), nn.LSTM(128, 256, batch_first=True), nn.Linear(256, 50)

    def forward(self, x):
        return self.head(self.lstm(self.words(x))[0])


def lstm():
    return train(Tagger(), lambda: (torch.randint(0, 2000, (32, 32)), torch.randint(0, 50, (32, 32))),
                 lambda net, x, y: F.cross_entropy(net(x).flatten(0, 1), y.flatten()), torch.optim.RMSprop)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.middle, self.up = nn.Conv2d(64, 128, 3, padding=1), nn.ConvTranspose2d(128, 64, 2, 2)
        self.join, self.last = nn.Conv2d(128, 64, 3, padding=1), nn.ConvTranspose2d(64, 32, 2, 2)
        self.out = nn.Conv2d(64, 3, 1)

    def forward(self, x):
        a = F.relu(self.down1(x))
        b = F.relu(self.down2(F.max_pool2d(a, 2)))
        c = F.relu(self.middle(F.max_pool2d(b, 2)))
        d = F.relu(self.join(torch.cat([self.up(c), b], 1)))
        return self.out(torch.cat([self.last(d), a], 1))


def unet():
    return train(UNet(), lambda: (torch.randn(8, 3, 64, 64), torch.randn(8, 3, 64, 64)), lambda net, x, y: F.mse_loss(net(x), y))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 512), nn.ReLU())
        self.mean, self.spread = nn.Linear(512, 64), nn.Linear(512, 64)
        self.decoder = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 784), nn.Sigmoid())

    def forward(self, x):
        h = self.encoder(x)
        mean, spread = self.mean(h), self.spread(h)
        return self.decoder(mean + torch.randn_like(mean) * torch.exp(0.5 * spread)), mean, spread


def vae():
    def loss(net, x):
        y, mean, spread = net(x)
        return F.binary_cross_entropy(y, x, reduction="sum") - 0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())

    return train(Vae(), lambda: (torch.rand(512, 784),), loss)


def embedding():
    model = nn.Sequential(nn.EmbeddingBag(20000, 64), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2))
    return train(model, lambda: (torch.randint(0, 20000, (256, 100)), torch.randint(0, 2, (256,))), classified, torch.optim.Adagrad)


def mobilenet():
    def block(before, width, stride):
        return nn.Sequential(nn.Conv2d(before, before, 3, stride, 1, groups=before, bias=False), nn.BatchNorm2d(before), nn.ReLU6(),
                             nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6())

    model = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), block(32, 64, 1), block(64, 128, 2), block(128, 128, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(128, 10))
    return train(model, pictures(), classified)


def gan():
    maker = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 784), nn.Tanh()).to(DEVICE)
    critic = nn.Sequential(nn.Linear(784, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1)).to(DEVICE)
    oracle = Oracle(maker, critic)
    of_maker, of_critic = torch.optim.Adam(maker.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(STEPS):
        real, noise = torch.randn(256, 784).to(DEVICE), torch.randn(256, 64).to(DEVICE)
        oracle.inputs(real, noise)
        with oracle.forward():
            fake = maker(noise)
            loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
        of_critic.zero_grad()
        oracle.backward(loss)
        oracle.step(of_critic)
        with oracle.forward():
            loss = F.softplus(-critic(fake)).mean()
        of_maker.zero_grad()
        oracle.backward(loss)
        oracle.step(of_maker)
        del loss, fake, real, noise
    return oracle


def accumulation():
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10)).to(DEVICE)
    oracle, optimizer = Oracle(model), torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(4):
            x, y = torch.randn(128, 512).to(DEVICE), torch.randint(0, 10, (128,)).to(DEVICE)
            oracle.inputs(x, y)
            with oracle.forward():
                loss = F.cross_entropy(model(x), y) / 4
            oracle.backward(loss)
            del loss, x, y
        oracle.step(optimizer)
    return oracle


def manual_sgd():
    """Without torch.optim."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 10)).to(DEVICE)
    oracle = Oracle(model)
    for _ in range(STEPS):
        x, y = torch.randn(256, 512).to(DEVICE), torch.randint(0, 10, (256,)).to(DEVICE)
        oracle.inputs(x, y)
        with oracle.forward():
            loss = F.cross_entropy(model(x), y)
        oracle.backward(loss)
        with oracle.window("optimizer"), torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        del loss, x, y
    return oracle


def averaged():
    """A copy of the model follows its weights; nobody calls it."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(DEVICE)
    average, optimizer = copy.deepcopy(model).requires_grad_(False), torch.optim.SGD(model.parameters(), 0.01)
    oracle = Oracle(model, average)
    for _ in range(2 * STEPS):
        x, y = torch.randn(64, 512).to(DEVICE), torch.randint(0, 10, (64,)).to(DEVICE)
        oracle.inputs(x, y)
        with oracle.forward():
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        oracle.backward(loss)
        oracle.step(optimizer)
        with torch.no_grad():
            for mine, its in zip(average.parameters(), model.parameters()):
                mine.lerp_(its, 0.1)
        del loss, x, y
    return oracle


class Statistics(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("products", torch.zeros(width, width))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.products = 0.9 * self.products + 0.1 * (x.t() @ x)
        return x


def replaced():
    """A buffer is another tensor after each forward pass, and all of them are after a change of type."""
    model = nn.Sequential(nn.Linear(256, 512), Statistics(512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 10))
    model.register_buffer("mask", torch.ones(512, 512))
    with torch.no_grad():
        model.eval()(torch.randn(2, 256))
    return train(model.train().double(), lambda: (torch.randn(64, 256).double(), torch.randint(0, 10, (64,))), classified)


def autocast():
    """What a layer makes of its float32 weights is kept for the backward pass."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10)).to(DEVICE)
    oracle, optimizer = Oracle(model), torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        x, y = torch.randn(256, 512).to(DEVICE), torch.randint(0, 10, (256,)).to(DEVICE)
        oracle.inputs(x, y)
        with oracle.forward(), torch.autocast(DEVICE, torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        oracle.backward(loss)
        oracle.step(optimizer)
        del loss, x, y
    return oracle


def master_copies():
    """The model is bfloat16; the optimizer trains float32 copies of its weights."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10)).to(DEVICE, torch.bfloat16)
    masters = [nn.Parameter(parameter.detach().float()) for parameter in model.parameters()]
    oracle, optimizer = Oracle(model, nn.ParameterList(masters)), torch.optim.Adam(masters)
    for _ in range(STEPS):
        x, y = torch.randn(256, 512, dtype=torch.bfloat16).to(DEVICE), torch.randint(0, 10, (256,)).to(DEVICE)
        oracle.inputs(x, y)
        with oracle.forward():
            loss = F.cross_entropy(model(x), y)
        oracle.backward(loss)
        for master, parameter in zip(masters, model.parameters()):
            master.grad, parameter.grad = parameter.grad.float(), None
        oracle.look()
        oracle.step(optimizer)
        with torch.no_grad():
            for master, parameter in zip(masters, model.parameters()):
                parameter.copy_(master)
        del loss, x, y
    return oracle


def run(name):
    torch.manual_seed(0)
    return globals()[name]()


if __name__ == "__main__":
    run_each(sys.argv[2:], run)
