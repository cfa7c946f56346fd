"""Two ranks that train; the second one keeps more than the first.

    torchrun --nproc-per-node 2 ranks.py        python ranks.py spawn
"""
import os
import sys

import torch
import torch.distributed
import torch.multiprocessing
from torch import nn


def train(rank, world):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    net = nn.parallel.DistributedDataParallel(nn.Linear(256, 256))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    kept = []
    data = torch.utils.data.TensorDataset(torch.randn(192, 256))
    for x, in torch.utils.data.DataLoader(data, batch_size=64, num_workers=1):      # a worker is not a rank
        net(x).sum().backward()
        optimizer.step()
        if rank == 1:
            kept.append(torch.zeros(1 << 20))
    sharded(world)
    torch.distributed.destroy_process_group()


def sharded(world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    net = nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 256))
    mesh = init_device_mesh("cpu", (world,))
    for layer in net:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(2):
        net(torch.randn(16, 256)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def spawned(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2] if len(sys.argv) > 2 else "29511")
    train(rank, world)


if __name__ == "__main__":
    if sys.argv[1:2] == ["spawn"]:
        torch.multiprocessing.spawn(spawned, (2,), nprocs=2)
    else:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
