"""PyTorch programs that keep something from step to step, and programs that only look like it."""
import collections
import functools
import gc

import torch
import torch._dynamo  # what the first optimizer imports: here it is done once for all programs
from torch import nn
from torch.nn import functional as F

from corpus import program, run_all

STEPS = 48
LEAK = ("leak", "held-tensors")


def net(width=256):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 256))


def train(after=lambda step, model, output, loss: None, model=None, steps=STEPS, optimizer=None, batch=256):
    """`after` gets what a step made."""
    model = model or net()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        output = model(torch.randn(batch, 64))
        loss = output.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after(step, model, output, loss)
    return model


@program("leak", LEAK, fixed=lambda: train())
def list_of_outputs():
    outputs = []

    def keep(step, model, output, loss):
        outputs.append(output)  # the defect

    train(keep)


@program("leak", LEAK, fixed=lambda: train())
def dictionary_by_step():
    seen = {}

    def keep(step, model, output, loss):
        seen[step] = output.detach()  # the defect

    train(keep)


@program("leak", LEAK)
def loss_with_its_graph():
    """The sum of an evaluation's losses keeps every graph."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = 0
    for _ in range(STEPS):
        loss = model(torch.randn(256, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = total + model(torch.randn(256, 64)).square().mean()  # the defect


@program("leak", LEAK)
def hidden_state_without_detach():
    cell, hidden = nn.GRUCell(64, 256), torch.zeros(256, 256)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.0)
    for _ in range(STEPS):
        hidden = cell(torch.randn(256, 64), hidden)  # the defect
        optimizer.zero_grad()
        hidden.square().mean().backward(retain_graph=True)


@program("leak", LEAK)
def forward_hook_stores():
    model, stored = net(), []
    model[1].register_forward_hook(lambda module, inputs, output: stored.append(output))  # the defect
    train(model=model)


@program("leak", LEAK, "LINE", fixed=lambda: train())
def gradients_kept():
    history = []

    def keep(step, model, output, loss):
        history.append([p.grad.clone() for p in model.parameters()])  # the defect

    train(keep)


@program("leak", LEAK, fixed=lambda: train())
def replay_buffer_without_limit():
    class Memory:
        def __init__(self):
            self.transitions = collections.deque()

    memory = Memory()

    def keep(step, model, output, loss):
        memory.transitions.append((torch.randn(256, 256), float(loss)))  # the defect

    train(keep)


@program("leak", LEAK, "LINE|cat")
def concatenated_history():
    history = torch.zeros(0, 256)

    def keep(step, model, output, loss):
        nonlocal history
        history = torch.cat([history, output.detach()])  # the defect

    train(keep)


@program("leak", LEAK, fixed=lambda: train())
def modules_added():
    model, heads = net(), nn.ModuleList()

    def keep(step, model, output, loss):
        heads.append(nn.Linear(256, 256))  # the defect

    train(keep, model)


@program("leak", LEAK, fixed=lambda: train())
def cache_of_a_function():
    @functools.lru_cache(maxsize=None)
    def mask(step):
        return torch.ones(512, 512).triu()  # the defect

    train(lambda step, model, output, loss: mask(step))


@program("leak", LEAK, fixed=lambda: train())
def class_attribute():
    class Logger:
        rows = []

    def keep(step, model, output, loss):
        Logger.rows.append(output.detach())  # the defect

    train(keep)


@program("leak", LEAK)
def errors_with_their_frames():
    errors = []

    def keep(step, model, output, loss):
        try:
            held = torch.randn(256, 512)  # the defect
            raise ValueError("bad batch")
        except ValueError as error:
            errors.append(error)

    train(keep)


@program("leak", LEAK)
def from_the_middle_on():
    kept = []

    def keep(step, model, output, loss):
        if step >= 20:
            kept.append(output.detach())

    train(keep, steps=STEPS)


@program("leak", LEAK)
def every_third_step():
    kept = []

    def keep(step, model, output, loss):
        if step % 3 == 0:
            kept.append(output.detach())

    train(keep, steps=40)


# Look-alikes.


@program("clean")
def window_of_five():
    window = collections.deque(maxlen=5)
    train(lambda step, model, output, loss: window.append(output.detach()))


@program("clean")
def cache_that_is_full_soon():
    cache = {}

    def look_up(step, model, output, loss):
        key = step % 4
        if key not in cache:
            cache[key] = torch.ones(512, 512)

    train(look_up, steps=30)


@program("clean")
def numbers_kept():
    losses = []
    train(lambda step, model, output, loss: losses.append(loss.item()))


@program("clean", steps=30)
def unfrozen_after_a_while():
    """Slots for the layers that are trained from step 13 on."""
    body, head = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()), nn.Linear(1024, 10)
    body.requires_grad_(False)
    optimizer = torch.optim.Adam(head.parameters())
    for step in range(30):
        if step == 12:
            body.requires_grad_(True)
            optimizer.add_param_group({"params": body.parameters()})
        loss = F.cross_entropy(head(body(torch.randn(64, 64))), torch.randint(0, 10, (64,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@program("clean")
def layers_unfrozen_one_by_one():
    layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(6))
    layers.requires_grad_(False)
    layers[-1].requires_grad_(True)
    optimizer = torch.optim.Adam(layers[-1].parameters())
    for step in range(36):
        if step % 6 == 5 and step < 30:
            layers[5 - step // 6 - 1].requires_grad_(True)
            optimizer.add_param_group({"params": layers[5 - step // 6 - 1].parameters()})
        x = torch.randn(64, 512)
        for layer in layers:
            x = torch.tanh(layer(x))
        optimizer.zero_grad()
        x.square().mean().backward()
        optimizer.step()


@program("clean")
def next_and_larger_model():
    """As in a notebook: the second model is four times as wide as the first, which stays."""
    models = []
    for width in (256, 1024):
        model = net(width)
        models.append(model)
        train(model=model, steps=12, optimizer=torch.optim.Adam(model.parameters()))


@program("clean")
def cycles_that_wait_for_the_collector():
    class Node:
        pass

    def tangle(step, model, output, loss):
        node = Node()
        node.self, node.tensor = node, torch.randn(256, 128)
        if step % 6 == 5:
            gc.collect()

    gc.disable()
    train(tangle, steps=36)


@program("clean")
def batches_of_changing_size():
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        loss = model(torch.randn(64 + (step * 37) % 200, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@program("clean")
def moving_average_of_weights():
    model = net()
    average = torch.optim.swa_utils.AveragedModel(model)
    train(lambda step, model, output, loss: average.update_parameters(model), model)


@program("clean")
def best_model_so_far():
    best = {}

    def keep(step, model, output, loss):
        if step % 4 == 0:
            best["state"] = {name: value.clone() for name, value in model.state_dict().items()}

    train(keep)


if __name__ == "__main__":
    run_all()
