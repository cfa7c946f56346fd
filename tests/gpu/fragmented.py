"""Fills 1 GiB with blocks of 1.5 MiB, frees all but one in each segment of 20 MiB, and requests 300 MiB: too much for any hole, but not for what is free."""
import torch

torch.cuda.set_per_process_memory_fraction((1 << 30) / torch.cuda.mem_get_info()[1])
PER_SEGMENT = 13
blocks = [torch.empty(3 << 19, dtype=torch.uint8, device="cuda") for _ in range(50 * PER_SEGMENT)]
# At the beginning of one segment and at the end of the next: without borders between segments, what is free is in pieces of 36 MiB.
kept = [block for i, block in enumerate(blocks) if i % PER_SEGMENT == (0 if i // PER_SEGMENT % 2 == 0 else PER_SEGMENT - 1)]
del blocks
large = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
print(len(kept), large.numel())
