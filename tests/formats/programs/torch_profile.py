"""Writes a Chrome trace of torch.profiler on the CPU, and prints what the profiler's own list of events adds up to."""
import json
import sys

import torch

with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
    kept = []
    x = torch.randn(256, 256)
    for i in range(10):
        y = x @ x
        kept.append(torch.relu(y))
    del kept[3:], y
profile.export_chrome_trace(sys.argv[1])
live = peak = allocs = peak_ns = 0
for event in profile.profiler.kineto_results.events():
    if event.name() != "[memory]":
        continue
    live += event.nbytes()
    allocs += event.nbytes() > 0
    if live > peak:
        peak, peak_ns = live, event.start_ns()
print(json.dumps({"peak": peak, "peak_ns": peak_ns, "end": live, "allocs": allocs}))
