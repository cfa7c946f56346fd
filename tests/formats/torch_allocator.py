"""PyTorch's caching allocator in Python, for snapshots without a GPU: best fit, rounding, splitting and merging as in
c10/cuda/CUDACachingAllocator.cpp, with the statistics that torch.cuda.memory_stats() would report."""
import bisect
import random

KIB, MIB = 1 << 10, 1 << 20
MIN_BLOCK, SMALL, SMALL_BUFFER, LARGE_BUFFER, MIN_LARGE, ROUND_LARGE = 512, MIB, 2 * MIB, 20 * MIB, 10 * MIB, 2 * MIB


class Block:
    def __init__(self, address, size, segment, small):
        self.address, self.size, self.segment, self.small = address, size, segment, small
        self.before = self.after = None
        self.requested, self.allocated = 0, False


class Allocator:
    def __init__(self, seed=1):
        self.free = {True: [], False: []}           # small or large -> sorted (size, address, block)
        self.blocks, self.segments, self.trace = {}, {}, []
        self.allocated = self.peak = self.requested = self.requested_peak = self.reserved = self.reserved_peak = 0
        self.random, self.clock, self.next_address = random.Random(seed), 1_700_000_000_000_000, 0x7F0000000000
        self.stacks = [[{"name": f"op_{i}", "filename": f"model_{i % 3}.py", "line": 10 + i}, {"name": "main", "filename": "train.py", "line": 4}]
                       for i in range(5)]

    def _note(self, action, address, size, stack=None):
        self.clock += self.random.randrange(0, 3)   # several events share a microsecond
        entry = {"action": action, "addr": address, "size": size, "stream": 0, "time_us": self.clock, "compile_context": "N/A"}
        self.trace.append({**entry, "frames": stack or []})

    def _put(self, block):
        bisect.insort(self.free[block.small], (block.size, block.address, block), key=lambda item: item[:2])

    def _drop(self, block):
        at = bisect.bisect_left(self.free[block.small], (block.size, block.address), key=lambda item: item[:2])
        assert self.free[block.small].pop(at)[2] is block

    def _segment(self, size):
        small = size <= SMALL
        length = SMALL_BUFFER if small else LARGE_BUFFER if size < MIN_LARGE else (size + ROUND_LARGE - 1) // ROUND_LARGE * ROUND_LARGE
        address, self.next_address = self.next_address, self.next_address + length    # segments lie side by side
        block = Block(address, length, address, small)
        self.segments[address] = block
        self.reserved += length
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        self._note("segment_alloc", address, length)
        return block

    def alloc(self, requested):
        size = max(MIN_BLOCK, (requested + MIN_BLOCK - 1) // MIN_BLOCK * MIN_BLOCK)
        small = size <= SMALL
        at = bisect.bisect_left(self.free[small], (size, 0), key=lambda item: item[:2])
        block = self.free[small].pop(at)[2] if at < len(self.free[small]) else self._segment(size)
        left = block.size - size
        if left >= MIN_BLOCK if small else left > SMALL:
            rest = Block(block.address + size, left, block.segment, small)
            rest.before, rest.after = block, block.after
            if block.after:
                block.after.before = rest
            block.after, block.size = rest, size
            self._put(rest)
        block.requested, block.allocated = requested, True
        self.blocks[block.address] = block
        self.allocated += block.size
        self.requested += requested
        self.peak, self.requested_peak = max(self.peak, self.allocated), max(self.requested_peak, self.requested)
        self._note("alloc", block.address, requested, self.random.choice(self.stacks))
        return block

    def release(self, block):
        self._note("free_requested", block.address, block.requested)
        self._note("free_completed", block.address, block.requested)
        self.allocated -= block.size
        self.requested -= block.requested
        block.allocated = False
        del self.blocks[block.address]
        for other in (block.before, block.after):
            if other is None or other.allocated:
                continue
            self._drop(other)
            first, second = (other, block) if other is block.before else (block, other)
            first.size, first.after = first.size + second.size, second.after
            if second.after:
                second.after.before = first
            block = first
        self._put(block)

    def empty_cache(self):
        """torch.cuda.empty_cache(): segments without a live block go back, those for large blocks first."""
        for small in (False, True):
            for _, _, block in [item for item in self.free[small] if item[2].before is None and item[2].after is None]:
                self._drop(block)
                del self.segments[block.segment]
                self.reserved -= block.size
                self._note("segment_free", block.address, block.size)

    def snapshot(self, entries=None):
        segments = []
        for address, block in self.segments.items():
            blocks = []
            while block:
                blocks.append({"address": block.address, "size": block.size, "requested_size": block.requested, "frames": [],
                               "state": "active_allocated" if block.allocated else "inactive"})
                block = block.after
            used = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
            segments.append({"device": 0, "address": address, "total_size": sum(b["size"] for b in blocks), "allocated_size": used, "active_size": used,
                             "requested_size": 0, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                             "frames": [], "blocks": blocks})
        return {"segments": segments, "device_traces": [self.trace if entries is None else self.trace[-entries:]],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                                       "expandable_segments": False, "roundup_power2_divisions": {"1": 0}},
                "external_annotations": []}


def run(events=3000, seed=1, empties=0):
    """An allocator after that many random events; the cache is emptied after each of `empties` parts of them."""
    allocator, live = Allocator(seed), []
    for number in range(events):
        if empties and number % (events // empties) == events // empties - 1:
            allocator.empty_cache()
        if live and allocator.random.random() < 0.48:
            allocator.release(live.pop(allocator.random.randrange(len(live))))
        else:
            scale = allocator.random.choice([200, 3000, 900_000, 3 * MIB, 30 * MIB])
            live.append(allocator.alloc(allocator.random.randrange(1, scale)))
    return allocator
