"""Small PyTorch programs that say what is true about themselves: each prints one line of JSON.

    python workload.py CASE

Long because each case is a small program, and all of them train the same network.
"""
import json
import sys
import traceback

import torch
from torch import nn

torch.manual_seed(0)
if not hasattr(torch.Tensor, "untyped_storage"):        # 1.13
    torch.Tensor.untyped_storage = torch.Tensor.storage


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self, width=32, blocks=3, checkpoint=False):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 100)
        self.checkpoint = checkpoint

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            if self.checkpoint:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=self.checkpoint == "reentrant")
            else:
                x = block(x)
        return self.head(x)


def train(net, steps, after_step=None):
    optimizer = torch.optim.AdamW(net.parameters())
    for step in range(steps):
        x, y = torch.randint(0, 100, (8, 16)), torch.randint(0, 100, (8, 16))
        loss = nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        if after_step is not None:
            after_step(step, optimizer)
        optimizer.zero_grad()
    return optimizer


def storages(tensors):
    return {name: tensor.untyped_storage().data_ptr() for name, tensor in tensors}


def case_profiled():
    """Training under PyTorch's own profiler: its memory events, one by one."""
    import vramscope
    torch.set_num_threads(1)
    net = Net()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        vramscope.mark("begin")
        train(net, 3)
        vramscope.mark("end")
    events = []

    def visit(node):
        if "Allocation" in str(node.typed[0] if hasattr(node, "typed") else node.tag):     # tag: 1.13
            extra = node.extra_fields
            events.append([node.start_time_ns, extra.ptr, extra.alloc_size, extra.total_allocated])
        for child in node.children:
            visit(child)
    for root in profiler.profiler.kineto_results.experimental_event_tree():
        visit(root)
    events.sort(key=lambda event: event[0])
    return {"events": [event[1:] for event in events]}


def case_layers():
    """For each layer the addresses of what it made in forward and of the gradients it made in backward."""
    net = Net()
    made = []

    def after_forward(name):
        def hook(module, inputs, output):
            made.append(["forward", name, output.untyped_storage().data_ptr()])
        return hook

    for name, module in net.named_modules():
        if name and not list(module.children()):
            module.register_forward_hook(after_forward(name))
    train(net, 3)
    return {"made": made}


def case_tags():
    """Where parameters, gradients and optimizer state lie after the second step."""
    net, found = Net(), {}

    def after_step(step, optimizer):
        if step == 1:
            found["parameter"] = storages(net.named_parameters())
            found["gradient"] = storages((name, p.grad) for name, p in net.named_parameters())
            names = {p: name for name, p in net.named_parameters()}
            found["optimizer_state"] = storages((f"{names[p]}.{key}", value) for p, state in optimizer.state.items()
                                                for key, value in state.items())
    train(net, 4, after_step)
    return found


def case_checkpoint(kind):
    import torch.utils.checkpoint  # noqa: F401
    train(Net(checkpoint=kind), 3)
    return {}


def case_nested_checkpoint():
    """A checkpoint inside a checkpoint: backward runs inside backward."""
    from torch.utils.checkpoint import checkpoint
    net = nn.Sequential(Block(64), Block(64), Block(64))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(128, 64, requires_grad=True)
        inner = [lambda x, block=block: checkpoint(block, x, use_reentrant=True) for block in net]
        checkpoint(lambda x: inner[1](inner[0](x)), inner[2](x), use_reentrant=True).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return {}


def case_unfrozen():
    """The second layer is used from the fifth step on, and is made known to the recorder then, with other names."""
    import vramscope.torch
    net = nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 32))
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(8):
        if step == 4:
            vramscope.torch.watch(net, optimizer)
        (net if step >= 4 else net[0])(torch.randn(16, 32)).sum().backward()
        optimizer.step()
        gradients = {name: p.grad.untyped_storage().data_ptr() for name, p in net.named_parameters() if p.grad is not None}
        optimizer.zero_grad()
    names = {p: name for name, p in net.named_parameters()}
    return {"state": storages((f"{names[p]}.{key}", value) for p, state in optimizer.state.items() for key, value in state.items()),
            "gradients": gradients}


def case_oom():
    try:
        torch.empty(1 << 50)
    except RuntimeError as error:
        return {"error": str(error)}
    return {}


def case_stacks():
    """Allocations of sizes that nothing else has, each with the stack as Python sees it."""
    import random

    def extract_stack():
        """traceback.extract_stack() without the text of the source lines, which would take most of the time."""
        frame = sys._getframe(1)
        return traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)

    numbers = random.Random(5)
    taken = {}

    class Maker(nn.Module):
        def forward(self, depth):
            return go(depth)

    maker = Maker()

    def plain(depth):
        return go(depth)

    def listed(depth):
        return [go(depth) for _ in range(1)]

    def go(depth):
        if depth == 0:
            size = 1_000_003 + 16 * len(taken)
            stack, kept = extract_stack(), torch.empty(size, dtype=torch.uint8)
            taken[size] = [[frame.filename, frame.lineno, frame.name] for frame in stack]
            return kept
        return numbers.choice((plain, listed, maker))(depth - 1)

    assert [(f.filename, f.lineno, f.name) for f in extract_stack()][1:] == \
        [(f.filename, f.lineno, f.name) for f in reversed(traceback.extract_stack())][1:]
    for _ in range(10_000):
        go(numbers.randrange(1, 10))
    return {"stacks": taken}


def case_compile():
    torch._dynamo.config.suppress_errors = False
    graphs = []

    def backend(graph, inputs):
        graphs.append(len(list(graph.graph.nodes)))
        return graph.forward

    net = torch.compile(Net(), backend=backend)
    train(net, 4)
    function = Net()
    function.compile(backend=backend)
    train(function, 3)
    counters = torch._dynamo.utils.counters
    return {"graphs": len(graphs), "breaks": sum(counters["graph_break"].values()), "recompiles": sum(counters["recompiles"].values())}


def case_deep():
    """Allocates at the bottom of a thousand calls, and of more."""
    sys.setrecursionlimit(5000)

    def down(calls, size):
        if calls:
            return down(calls - 1, size)
        frames = len(list(traceback.walk_stack(sys._getframe())))
        return frames, torch.empty(size, dtype=torch.uint8)

    return {size: down(calls, size)[0] for calls, size in ((1000, 1_000_003), (2000, 2_000_003))}


def case_compiled(backend, what="model"):
    """The whole model, or each block for itself."""
    net = Net()
    if what == "blocks":
        for block in net.blocks:
            block.compile(backend=backend)
    elif backend != "none":
        return train(torch.compile(net, backend=backend), 4) and {}
    train(net, 4)
    return {}


def case_loader():
    data = torch.utils.data.TensorDataset(torch.randint(0, 100, (32, 16)), torch.randint(0, 100, (32, 16)))
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in torch.utils.data.DataLoader(data, batch_size=8):
        nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    return {}


def case_gan():
    """Two models, two optimizers, the second model not called before the second step."""
    one, other = Net(width=16), Net(width=48)
    first, second = torch.optim.SGD(one.parameters(), lr=0.1), torch.optim.SGD(other.parameters(), lr=0.1)
    x = torch.randint(0, 100, (8, 16))
    for step in range(6):
        one(x).mean().backward()
        first.step()
        if step:
            other(x).mean().backward()
            second.step()
    return {}


def case_turns(critics):
    """Optimizers that take turns, the first one several times; then another training loop while the first optimizers still exist."""
    nets = [Net(width=16), Net(width=48), Net(width=32)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    x = torch.randint(0, 100, (8, 16))
    for _ in range(8):
        for which in [0] * int(critics) + [1]:
            nets[which](x).mean().backward()
            optimizers[which].step()
    for _ in range(14):
        nets[2](x).mean().backward()
        optimizers[2].step()
    return {}


def case_failing():
    """The third backward pass fails, and the program continues."""
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.clone()

        @staticmethod
        def backward(context, gradient):
            raise ValueError("on purpose")

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    failed = 0
    for step in range(6):
        y = net(torch.randint(0, 100, (8, 16)))
        try:
            (Fails.apply(y) if step == 2 else y).mean().backward()
        except ValueError:
            failed += 1
        optimizer.step()
        optimizer.zero_grad()
    return {"failed": failed}


def case_search():
    """Models that are made, trained and dropped; each has other names. Said: where things of the last one lie."""
    import gc

    class Numbered(nn.Module):
        def __init__(self, number):
            super().__init__()
            self.net = nn.ModuleDict({f"of{number}_{i}": nn.Linear(8 + number, 8 + number) for i in range(number + 2)})

        def forward(self, x):
            for layer in self.net.values():
                x = layer(x)
            return x

    for number in range(6):
        net = Numbered(number)
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(7):
            net(torch.randn(4, 8 + number)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        found = storages(net.named_parameters())
        if number < 5:
            del net, optimizer
            gc.collect()
    return found


def case_two_models():
    """Layers of the same names in two models. Said: the bytes of each layer's parameters."""
    one = nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 40))
    other = nn.Sequential(nn.Linear(40, 56), nn.Tanh(), nn.Linear(56, 8))
    optimizer = torch.optim.Adam([*one.parameters(), *other.parameters()])
    for _ in range(4):
        other(one(torch.randn(4, 16))).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return sorted(sum(4 * p.numel() for p in layer.parameters()) for layer in (one[0], one[2], other[0], other[2]))


def case_accumulate():
    """Two backward passes in each step. Said: what autograd keeps for one of them, but parameters and inputs."""
    net = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(64, 64), nn.Tanh())))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    parameters = set(storages(net.named_parameters()).values())
    x = torch.randn(4096, 64)
    for step in range(4):
        for _ in range(2):
            kept = {}

            def keep(tensor):
                place = tensor.untyped_storage()
                if place.data_ptr() not in parameters and place.data_ptr() != x.untyped_storage().data_ptr():
                    kept[place.data_ptr()] = place.nbytes()
                return tensor
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                loss = net(x).mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return {"kept": sum(kept.values())}


def case_evaluation(kind):
    """Ten training steps. "between": evaluations on larger batches after each five, and a checkpoint. "teacher": another model runs
    without gradients in each step."""
    net, teacher = Net(), Net(width=64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        for _ in range(5):
            x = torch.randint(0, 100, (8, 16))
            target = 0.0
            if kind == "teacher":
                with torch.no_grad():
                    target = teacher(x)
            ((net(x) - target) ** 2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            for _ in range(3):
                net(torch.randint(0, 100, (256, 16))).mean()
    return {"steps": 10, "at_end": [epoch]}


def case_names():
    """Names that are not ASCII."""
    class Größe(nn.Module):
        def __init__(self):
            super().__init__()
            self.schicht_ä = nn.Linear(64, 64)
            self.層 = nn.Linear(64, 64)

        def forward(self, x):
            return self.層(self.schicht_ä(x).relu())

    net = Größe()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(6):
        net(torch.randn(256, 64)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [name for name, _ in net.named_parameters()]


def case_inference():
    net = Net().eval()
    with torch.inference_mode():
        for _ in range(6):
            net(torch.randint(0, 100, (8, 16)))
    return {}


if __name__ == "__main__":
    said = globals()["case_" + sys.argv[1]](*sys.argv[2:])
    print(json.dumps(said))
