"""What a PyTorch program makes and drops: nothing of ours may keep any of it."""
import torch
import vramscope
from references import Local, Wrong, alive_after, watch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch_base import ROWS, WIDTH, data, network, prepare, train


def _trains():
    model, (x, y) = watch("model", network()), data()
    watch("batch", x)
    watch("layer", model[0])
    watch("parameter", model[0].weight)
    optimizer = watch("optimizer", torch.optim.Adam(model.parameters()))
    local = watch("local of a frame that trains", Local())
    for _ in range(4):
        watch("loss", train(model, x, y, optimizer))
    watch("activation", model[0](x))
    watch("gradient", model[0].weight.grad)
    watch("optimizer state", optimizer.state[model[0].weight]["exp_avg"])
    del local


def _hooks():
    def hook(module, inputs, output):
        watch("output in a hook", output)

    def pack(tensor):
        return tensor

    model, (x, y) = network(), data()
    model[0].register_forward_hook(watch("hook", hook))
    with torch.autograd.graph.saved_tensors_hooks(watch("hook for saved tensors", pack), lambda tensor: tensor):
        loss = ((model(x) - y) ** 2).mean()
    watch("loss under hooks", loss).backward()


def _errors():
    class Broken(nn.Module):
        def forward(self, x):
            local = watch("local of a frame that raises", Local())
            raise watch("error in a layer", Wrong(id(local)))

    def closure():
        local = watch("local of a closure", Local())
        raise watch("error in a closure", Wrong(id(local)))

    broken, model = watch("layer that raises", Broken()), network()
    watch("closure", closure)
    for wrong in (lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), broken)(data()[0]),
                  lambda: torch.optim.SGD(model.parameters(), lr=0.1).step(closure)):
        try:
            wrong()
        except Wrong:
            pass


def _loaders():
    dataset = watch("data set", TensorDataset(*data(2 * ROWS)))
    watch("tensor of a data set", dataset.tensors[0])
    for x, _ in watch("loader", DataLoader(dataset, batch_size=ROWS)):
        watch("batch of a loader", x)


def _looked_at():
    """`who_holds`, of a tensor and of its address."""
    kept = [watch("tensor that was looked at", torch.randn(ROWS, WIDTH))]
    local = watch("local of the frame that looks", Local())
    assert "kept[0]" in str(vramscope.who_holds(kept[0]))
    assert "kept[0]" in str(vramscope.who_holds(kept[0].data_ptr()))
    del local


def references():
    def drop():
        for part in (_trains, _hooks, _errors, _loaders, _looked_at):
            part()

    prepare()           # ends the last profile
    return alive_after(drop)
