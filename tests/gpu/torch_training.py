"""Trains a small transformer with PyTorch on the GPU and prints what PyTorch counted, as JSON on the last line.

    torch_training.py [STEPS]
"""
import ctypes
import json
import sys

import torch
from torch import nn

torch.manual_seed(0)
net = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 4).cuda()
head = nn.Linear(256, 1000).cuda()
parameters = [*net.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters)
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
    x = torch.randn(8, 64, 256, device="cuda")
    loss = head(net(x)).logsumexp(-1).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
process = ctypes.CDLL(None)
if hasattr(process, "vramscope_check"):
    process.vramscope_check(b"end")
stats = torch.cuda.memory_stats()
print(json.dumps({
    "allocs": stats.get("allocation.all.allocated"), "peak_bytes": stats.get("allocated_bytes.all.peak"),
    "current_bytes": stats.get("allocated_bytes.all.current"), "reserved_peak": stats.get("reserved_bytes.all.peak"),
    "reserved_current": stats.get("reserved_bytes.all.current"), "version": torch.__version__}))
