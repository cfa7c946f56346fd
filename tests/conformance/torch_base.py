"""What the PyTorch programs of this folder share: what PyTorch's own memory profiler saw at every step, and a small network.

The CPU allocator has no counter, so each step is one profile: its blocks and their ends, in the profiler's order, give the bytes in use
and their highest sum. One thread computes; the activations have 1 MiB.
"""
import torch
from counted import counters
from torch import nn
from torch.profiler import ProfilerActivity, profile

torch.set_num_threads(1)
ROWS, WIDTH = 8192, 32          # 1 MiB of float32

_profile = None
_current = 0


def prepare():
    global _profile, _current
    torch.manual_seed(1)
    if _profile is not None:
        _profile.__exit__(None, None, None)
    _profile, _current = None, 0


def count():
    """What is in use now, and at most since the last time; counted from the program's start."""
    global _profile, _current
    if _profile is not None:
        _profile.__exit__(None, None, None)
        peak = _current
        blocks = [event for event in _profile.profiler.kineto_results.events() if event.name() == "[memory]"]
        for event in sorted(blocks, key=lambda event: event.start_ns()):
            _current += event.nbytes()
            peak = max(peak, _current)
        counters.append([_current, peak])
    _profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
    _profile.__enter__()


def hold_outputs(hold):
    nn.modules.module.register_module_forward_hook(lambda module, inputs, output: hold(output))


def network(width=WIDTH, hidden=WIDTH):
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.LayerNorm(hidden), nn.Linear(hidden, 1))


def data(rows=ROWS, width=WIDTH):
    return torch.randn(rows, width), torch.randn(rows, 1)


def train(model, x, y, optimizer):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss
