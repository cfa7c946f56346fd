"""Programs for the tests of the replay on a GPU: many short ones in one process, under one setting of PyTorch's allocator.

    replay_programs.py SETTINGS PROGRAM...

Prints one JSON object per program: PyTorch's own history of the allocator, and its counters. The history starts and ends with an empty cache.
"""
import gc
import json
import random
import sys

import torch

MARK = 777  # bytes: a block of this size is freed right before the cache is emptied
LIMIT = 1 << 30


def entries():
    return torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]


def tensor(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def empty_cache():
    mark = tensor(MARK)
    del mark
    torch.cuda.empty_cache()


def sizes(chance):
    kind = chance.random()
    if kind < 0.5:
        return chance.randint(1, 1 << 20)
    if kind < 0.85:
        return chance.randint(1 << 20, 10 << 20)
    return chance.randint(10 << 20, 96 << 20)


def churn(seed, allocs=400, live_limit=40, empties=False, streams=0):
    """Blocks of random size and lifetime; on a limited pool, requests that fail are dropped."""
    chance = random.Random(seed)
    others = [torch.cuda.Stream() for _ in range(streams)]
    live = []
    for _ in range(allocs):
        stream = chance.choice([None, *others])
        try:
            with torch.cuda.stream(stream) if stream else torch.cuda.stream(torch.cuda.current_stream()):
                live.append(tensor(sizes(chance)))
        except torch.cuda.OutOfMemoryError:
            pass
        while len(live) > live_limit or (live and chance.random() < 0.46):
            live.pop(chance.randrange(len(live)))
        if empties and chance.random() < 0.02:
            empty_cache()


def steps(seed):
    """A training loop whose batch varies: blocks are freed in the reverse order."""
    chance = random.Random(seed)
    kept = [tensor(chance.randint(1 << 16, 4 << 20)) for _ in range(30)]
    for _ in range(12):
        batch = chance.choice([8, 16, 24, 32])
        activations = [tensor(batch * (64 << layer % 4) * 1024) for layer in range(24)]
        while activations:
            gradient = tensor(activations[-1].numel())
            activations.pop()
            del gradient
    del kept


def model(seed):
    """Real training, with the libraries' workspaces."""
    torch.manual_seed(seed)
    net = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 2, enable_nested_tensor=False).cuda()
    update = torch.optim.AdamW(net.parameters())
    for batch in (4, 8, 6):
        net(torch.randn(batch, 64, 256, device="cuda")).square().mean().backward()
        update.step()
        update.zero_grad()


PROGRAMS = {
    "churn": lambda seed: churn(seed), "empties": lambda seed: churn(seed, empties=True), "streams": lambda seed: churn(seed, streams=2),
    "tight": lambda seed: churn(seed, live_limit=80), "steps": steps, "model": model,
}


def main(settings, *programs):
    torch.cuda.init()
    total = torch.cuda.mem_get_info()[1]
    limit = 0
    if "limit" in settings:
        fraction = LIMIT / total
        torch.cuda.set_per_process_memory_fraction(fraction)
        limit = int(fraction * total)
    torch.cuda.memory._record_memory_history("all", context=None, max_entries=1_000_000)
    for number, name in enumerate(programs):
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        clean = torch.cuda.memory_reserved() == 0
        torch.cuda.reset_peak_memory_stats()
        before, retries, ooms = len(entries()), torch.cuda.memory_stats()["num_alloc_retries"], torch.cuda.memory_stats()["num_ooms"]
        PROGRAMS[name](number)
        gc.collect()
        stats = torch.cuda.memory_stats()
        history = [[e["action"], e.get("addr", 0), e["size"], e["stream"]] for e in entries()[before:]]      # an "oom" has no address
        print(json.dumps({
            "program": name, "clean": clean, "version": torch.__version__, "total": total, "limit": limit, "history": history,
            "reserved_peak": stats["reserved_bytes.all.peak"], "retries": stats["num_alloc_retries"] - retries, "ooms": stats["num_ooms"] - ooms}))


if __name__ == "__main__":
    main(*sys.argv[1:])
