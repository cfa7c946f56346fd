"""PyTorch programs: peaks in odd places, loops of many kinds, and clean ones."""
import io

import torch
import torch._dynamo  # what the first optimizer imports: here it is done once for all programs
from torch import nn
from torch.nn import functional as F

from corpus import program, run_all


def net(width=512):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def step_of(model, optimizer, batch=128):
    loss = F.cross_entropy(model(torch.randn(batch, 64)), torch.randint(0, 10, (batch,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01)


def validated(batch):
    model = net()
    optimizer = sgd(model)
    for epoch in range(3):
        for _ in range(8):
            step_of(model, optimizer, 64)
        with torch.no_grad():
            model(torch.randn(batch, 64))


@program("evaluation", "peak-is-evaluation", "smaller batches", fixed=lambda: validated(64))
def validation_with_larger_batches():
    validated(4096)


@program("evaluation", "peak-is-evaluation")
def validation_in_inference_mode():
    model = net()
    optimizer = sgd(model)
    for epoch in range(3):
        model.train()
        for _ in range(8):
            step_of(model, optimizer, 64)
        model.eval()
        with torch.inference_mode():
            for _ in range(2):
                model(torch.randn(8192, 64)).argmax(1)


@program("warm-up", "peak-is-start")
def large_array_before_training():
    data = torch.randn(4096, 1024)
    data = (data - data.mean(0)) / data.std(0)
    small = data[:128, :64].clone()
    del data
    model = net()
    optimizer = sgd(model)
    for _ in range(16):
        loss = model(small).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def after_a_dry_run(batch):
    model = net()
    optimizer = sgd(model)
    step_of(model, optimizer, batch)
    for _ in range(16):
        step_of(model, optimizer)


@program("warm-up", "peak-is-start", "in step 1.*smaller|in step 1.*as small", fixed=lambda: after_a_dry_run(128))
def dry_run_with_a_larger_batch():
    after_a_dry_run(8192)


def large(kind):
    """The batch is so large that the peak is in the backward pass: what optimizers need while they run differs from one to the other."""
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
    optimizer = kind(model.parameters())
    for _ in range(8):
        loss = model(torch.randn(1024, 512)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def with_momentum():
    large(lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, foreach=False))


@program("optimizer", "optimizer-state", r"2\.0 values per parameter", fixed=with_momentum)
def adam():
    large(lambda p: torch.optim.Adam(p, foreach=False))


@program("optimizer", "optimizer-state", r"3\.0 values per parameter", fixed=with_momentum)
def adam_with_amsgrad():
    large(lambda p: torch.optim.Adam(p, amsgrad=True, foreach=False))


@program("optimizer", "optimizer-state", r"2\.0 values per parameter", fixed=with_momentum)
def adadelta():
    large(lambda p: torch.optim.Adadelta(p, foreach=False))


@program("optimizer")
def rmsprop_keeps_one_value():
    large(lambda p: torch.optim.RMSprop(p, lr=1e-3))


@program("optimizer")
def sgd_keeps_none():
    large(lambda p: torch.optim.SGD(p, lr=1e-3))


@program("optimizer", "optimizer-state", r"values per parameter", also=("peak-is-start",))
def lbfgs_keeps_a_history():
    model, x = nn.Linear(512, 512), torch.randn(64, 512)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=8)

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - x.flip(1)).square().mean()
        loss.backward()
        return loss

    for _ in range(10):
        optimizer.step(closure)


# Loops of many kinds, none of them with a trouble.


@program("clean", steps=24)
def plain_loop():
    model = net()
    optimizer = sgd(model)
    for _ in range(24):
        step_of(model, optimizer)


@program("clean", steps=20)
def manual_sgd():
    model = net()
    for _ in range(20):
        loss = model(torch.randn(128, 64)).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
                p.grad = None


@program("clean")
def manual_sgd_by_grad():
    """torch.autograd.grad without modules, and new parameters instead of changed ones: nothing marks its steps."""
    weights = [torch.randn(64, 512, requires_grad=True), torch.randn(512, 10, requires_grad=True)]
    for _ in range(20):
        loss = (torch.relu(torch.randn(128, 64) @ weights[0]) @ weights[1]).square().mean()
        gradients = torch.autograd.grad(loss, weights)
        weights = [(w - 0.01 * g).detach().requires_grad_() for w, g in zip(weights, gradients)]


@program("clean", steps=40)
def optimizer_for_each_layer():
    """Applied in the backward pass, layer by layer."""
    model = net()
    optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}

    def update(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    for _ in range(40):
        model(torch.randn(128, 64)).square().mean().backward()


@program("clean", steps=40)
def optimizers_by_turns():
    body, head = nn.Linear(64, 512), nn.Linear(512, 10)
    first, second = torch.optim.Adam(body.parameters()), torch.optim.SGD(head.parameters(), lr=0.01)
    for _ in range(40):
        loss = F.cross_entropy(head(torch.relu(body(torch.randn(128, 64)))), torch.randint(0, 10, (128,)))
        first.zero_grad()
        second.zero_grad()
        loss.backward()
        first.step()
        second.step()


@program("clean", steps=10)
def gradients_accumulated():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i in range(40):
        F.cross_entropy(model(torch.randn(64, 64)), torch.randint(0, 10, (64,))).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


@program("clean", steps=16)
def gan():
    maker, critic = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256)), nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    of_maker, of_critic = torch.optim.SGD(maker.parameters(), lr=0.01), torch.optim.SGD(critic.parameters(), lr=0.01)
    for _ in range(16):
        fake = maker(torch.randn(128, 32))
        of_critic.zero_grad()
        (F.softplus(critic(fake.detach())) + F.softplus(-critic(torch.randn(128, 256)))).mean().backward()
        of_critic.step()
        of_maker.zero_grad()
        F.softplus(-critic(fake)).mean().backward()
        of_maker.step()


@program("clean", steps=16)
def gradient_penalty():
    critic = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    optimizer = sgd(critic)
    for _ in range(16):
        x = torch.randn(128, 256, requires_grad=True)
        value = critic(x).sum()
        slope, = torch.autograd.grad(value, x, create_graph=True)
        optimizer.zero_grad()
        (value + (slope.norm(dim=1) - 1).square().mean()).backward()
        optimizer.step()


@program("clean", steps=16)
def mixed_precision():
    model = net()
    optimizer = sgd(model)
    for _ in range(16):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(torch.randn(128, 64)), torch.randint(0, 10, (128,)))
        loss.backward()
        optimizer.step()


@program("clean", steps=18)
def checkpoints_saved():
    model = net()
    optimizer = sgd(model)
    for i in range(18):
        step_of(model, optimizer)
        if i % 6 == 5:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())


@program("clean", steps=16)
def activations_recomputed():
    from torch.utils.checkpoint import checkpoint
    blocks, head = nn.ModuleList(nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(4)), nn.Linear(256, 10)
    model = nn.ModuleList([*blocks, head])
    optimizer = sgd(model)
    for _ in range(16):
        x = torch.randn(128, 256, requires_grad=True)
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        optimizer.zero_grad()
        head(x).square().mean().backward()
        optimizer.step()


@program("clean", steps=16)
def frozen_teacher():
    teacher, student = net(), net(128)
    optimizer = sgd(student)
    for _ in range(16):
        x = torch.randn(128, 64)
        with torch.no_grad():
            target = teacher(x)
        optimizer.zero_grad()
        F.mse_loss(student(x), target).backward()
        optimizer.step()


@program("clean", steps=16)
def loader_with_a_smaller_last_batch():
    from torch.utils.data import DataLoader, TensorDataset
    data = TensorDataset(torch.randn(1000, 64), torch.randint(0, 10, (1000,)))
    model = net()
    optimizer = sgd(model)
    for _ in range(2):
        for x, y in DataLoader(data, batch_size=128, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


@program("clean")
def inference_only():
    model = net().eval()
    with torch.no_grad():
        for _ in range(30):
            model(torch.randn(512, 64)).argmax(1)


@program("clean", steps=24)
def two_models_one_after_the_other():
    for _ in range(2):
        model = net()
        optimizer = sgd(model)
        for _ in range(12):
            step_of(model, optimizer)


@program("clean", steps=20)
def sparse_embedding():
    model = nn.Sequential(nn.EmbeddingBag(20000, 32, sparse=True), nn.Linear(32, 2))
    optimizer = sgd(model)
    for _ in range(20):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randint(0, 20000, (64, 20))), torch.randint(0, 2, (64,))).backward()
        optimizer.step()


if __name__ == "__main__":
    run_all()
