"""PyTorch programs: hooks, saved tensors, graphs that are kept, errors, generators."""
import collections

import torch
from counted import program
from torch import nn
from torch.utils import checkpoint
from torch.utils.data import DataLoader, TensorDataset
from torch_base import ROWS, WIDTH, count, data, network, train


@program
def eager_loop():
    model, (x, y) = network(), data()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(6):
        train(model, x, y, optimizer)
        count()


@program
def module_hooks():
    model, (x, y) = network(), data()
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9, lr=0.01)
    kept = collections.deque(maxlen=3)
    for module in model:
        module.register_forward_hook(lambda module, inputs, output: kept.append(output.detach().clone()))
        module.register_full_backward_hook(lambda module, inputs, outputs: kept.append(outputs[0].clone()))
    for _ in range(5):
        train(model, x, y, optimizer)
        count()


@program
def saved_tensors():
    model, (x, y) = network(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor):
            train(model, x, y, optimizer)
        count()


@program
def retain_graph():
    model, (x, y) = network(), data()
    kept = None
    for _ in range(5):
        loss = ((model(x) - y) ** 2).mean()
        loss.backward(retain_graph=True)
        count()
        loss.backward()
        kept = loss
        count()
    del kept, loss
    count()


@program
def losses_with_their_graphs():
    model, (x, y) = network(), data()
    losses = []
    for _ in range(16):
        losses.append(((model(x) - y) ** 2).mean())
        count()
    losses.clear()
    count()


@program
def deque_of_activations():
    model, (x, y) = network(), data()
    optimizer = torch.optim.Adam(model.parameters())
    last = collections.deque(maxlen=12)
    for _ in range(16):
        train(model, x, y, optimizer)
        last.append(model[0](x))
        count()


@program
def checkpointing():
    blocks = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(4))
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01)
    for _ in range(5):          # the reentrant kind ends the process inside of PyTorch's profiler
        x = torch.randn(ROWS, WIDTH)
        for block in blocks:
            x = checkpoint.checkpoint(block, x, use_reentrant=False)
        optimizer.zero_grad()
        x.sum().backward()
        optimizer.step()
        count()


@program
def data_loader():
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(TensorDataset(*data(4 * ROWS)), batch_size=ROWS)
    for _ in range(2):
        for x, y in loader:
            train(model, x, y, optimizer)
            count()
    del loader, x, y
    count()


@program
def exceptions_kept():
    model, (x, y) = network(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = collections.deque(maxlen=3)
    for _ in range(5):
        train(model, x, y, optimizer)
        try:
            hidden = model[0](x)
            model[3](torch.cat([hidden, hidden], 1))
        except RuntimeError as error:
            kept.append(error)
        count()
    kept.clear()
    count()


@program
def out_of_memory():
    model, (x, y) = network(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for _ in range(5):
        train(model, x, y, optimizer)
        try:
            hidden = model(x)
            torch.empty(1 << 50) + hidden.sum()
        except RuntimeError as error:
            kept[:] = [error]
        count()
    kept.clear()
    count()


@program
def gan():
    generator, discriminator = network(16), network(1)
    optimizers = torch.optim.Adam(generator.parameters()), torch.optim.Adam(discriminator.parameters())
    for _ in range(5):
        fake = generator(torch.randn(ROWS, 16))
        optimizers[1].zero_grad()
        ((discriminator(fake.detach()) ** 2).mean() + ((discriminator(torch.randn(ROWS, 1)) - 1) ** 2).mean()).backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        ((discriminator(fake) - 1) ** 2).mean().backward()
        optimizers[0].step()
        count()


@program
def gradient_accumulation():
    model, (x, y) = network(), data()
    optimizer = torch.optim.Adam(model.parameters())
    for i in range(8):
        (((model(x) - y) ** 2).mean() / 4).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
        count()


@program
def models_and_optimizers_dropped():
    x, y = data()
    for _ in range(5):
        model = network(hidden=ROWS)
        optimizer = torch.optim.Adam(model.parameters())
        train(model, x[:8], y[:8], optimizer)
        count()
        del model, optimizer
        count()


@program
def generators_and_closures():
    def batches():
        for _ in range(5):
            batch = torch.randn(ROWS, WIDTH)
            yield batch
            del batch

    model, y = network(), torch.zeros(ROWS, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in batches():
        def closure():
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        count()
