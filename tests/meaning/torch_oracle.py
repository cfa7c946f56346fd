"""What PyTorch itself keeps its memory for: what autograd saved, what its nodes hand on, parameters, gradients, state of the optimizer."""
import contextlib

import torch

from claims import Claims


def address(tensor):
    return tensor.untyped_storage().data_ptr() if isinstance(tensor, torch.Tensor) and not tensor.is_sparse else 0


class Oracle(Claims):
    def __init__(self, *models):
        super().__init__()
        self.models = models

    @contextlib.contextmanager
    def forward(self):
        def pack(tensor):
            self.claim("activations", address(tensor))
            return tensor

        with self.window("forward"), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            yield

    def inputs(self, *tensors):
        self.claim("inputs", *map(address, tensors))

    def backward(self, loss):
        # Not AccumulateGrad: a hook there would make it copy the gradient that it takes over otherwise.
        def passed_on(grad_inputs, grad_outputs):
            self.claim("activation gradients", *map(address, (*grad_inputs, *grad_outputs)))

        for node in nodes_behind(loss):
            if type(node).__name__ != "AccumulateGrad":
                node.register_hook(passed_on)
        with self.window("backward"):
            loss.backward()
        self.look()

    def step(self, optimizer):
        with self.window("optimizer"):
            optimizer.step()
        states = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]
        self.claim("optimizer state", *map(address, states))
        self.look()

    def look(self):
        parameters = [p for model in self.models for p in model.parameters()]
        buffers = [b for model in self.models for b in model.buffers()]
        self.claim("parameters", *map(address, parameters))
        self.claim("buffers", *map(address, buffers))
        self.claim("gradients", *(address(p.grad) for p in parameters))
        self.facts["parameters"] = sum(p.nbytes for p in parameters)


def nodes_behind(loss):
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [behind for behind, _ in node.next_functions]
    return seen
