"""Libraries that take memory from the driver behind PyTorch's back: NCCL with one rank, cuBLAS, cuDNN."""
import json
import os

import torch
import torch.distributed

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("MASTER_PORT", "29517"))
torch.distributed.init_process_group("nccl", rank=0, world_size=1)
x = torch.randn(2048, 2048, device="cuda")
torch.distributed.all_reduce(x)
y = x @ x
z = torch.nn.functional.conv2d(torch.randn(8, 64, 64, 64, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda"))
torch.cuda.synchronize()
print(json.dumps({"nccl": torch.cuda.nccl.version(), "allocs": torch.cuda.memory_stats()["allocation.all.allocated"]}), flush=True)
torch.distributed.destroy_process_group()
