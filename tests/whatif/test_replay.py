"""Replays against TensorFlow itself: its pool on the CPU is the same allocator as on a GPU."""
import json
import subprocess

import pytest


def test_regions_and_peak_equal_tensorflows(record_tensorflow, vramscope, build):
    trace, said = record_tensorflow("resnet", 16, "graph")
    answer = json.loads(subprocess.check_output([vramscope, "whatif", trace, "--json"], text=True))
    assert answer["exact"], "the replay takes the recorded regions in the recorded order"
    assert answer["rows"][0]["reserved_low"] <= answer["recorded"] <= answer["rows"][0]["reserved_high"]
    assert answer["requested"] <= answer["live"] <= answer["packed"] <= answer["recorded"]

    lines = subprocess.check_output([vramscope, "dump", "--jsonl", trace], text=True, errors="surrogateescape").splitlines()
    events = [event for event in map(json.loads, lines) if event["event"] in ("alloc", "free", "region") and event["pool"] == answer["pool"]]
    text, live, addresses = ["model bfc", f"limit {64 << 30}"], {}, []
    for event in events:
        if event["event"] == "region":
            text.append(f"device {'return' if event['returned'] else 'take'} {event['address']} {event['bytes']}")
        elif event["event"] == "alloc":
            live[event["address"]] = f"b{len(addresses)}"
            text.append(f"alloc b{len(addresses)} {event['requested']}")
            addresses.append(event["address"])
        else:
            text.append(f"free {live.pop(event['address'])}")
    text.sort(key=lambda line: not line.startswith(("model", "limit", "device")))
    replayed = json.loads(subprocess.run([build / "replay_events"], input="\n".join(text), capture_output=True, text=True, check=True).stdout)
    assert replayed["addresses"] == addresses and replayed["differs_at"] is None
    assert replayed["allocated_peak"] == said["peak"], "TensorFlow's own counter"


def test_limits_are_told_from_the_run(record_tensorflow, vramscope):
    """TensorFlow's own peak counts what a block has beyond its request, and a smaller pool cuts that off: the requests alone are the bound."""
    trace, said = record_tensorflow("resnet", 16, "graph")
    live = json.loads(subprocess.check_output([vramscope, "whatif", trace, "--json"], text=True))["live"]
    assert live <= said["peak"]
    answer = json.loads(subprocess.check_output([vramscope, "whatif", trace, "--limit", str(live * 9 // 10), "--json"], text=True))
    assert not answer["rows"][0]["completes"], "less than what was live cannot be enough"
    assert answer["rows"][0]["failed"] > 0 and "fails" in answer["sentence"]


@pytest.mark.parametrize("options, message", [
    (["--allocator", "foo"], 'invalid allocator "foo": expected recorded, default, expandable'),
    (["--allocator", "max_split_size_mb:1"], 'invalid value "1" of max_split_size_mb'),
    (["--optimizer", "foo"], 'invalid optimizer "foo": expected sgd'),
    (["--precision", "fp8"], 'invalid precision "fp8": expected bf16 or fp16'),
    (["--checkpoint", "nowhere"], 'no activation of "nowhere" is kept'),
])
def test_invalid_options(record_tensorflow, vramscope, options, message):
    trace, _ = record_tensorflow("resnet", 16, "graph")
    done = subprocess.run([vramscope, "whatif", trace, *options], capture_output=True, text=True)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("case, prefix, foreign", [("clean", "TF_", "expandable"), ("pytorch", "PYTORCH_", "growth")])
def test_settings_are_those_of_the_framework(build, vramscope, tmp_path, case, prefix, foreign):
    """An allocator of another framework can be replayed, but there is no setting for it."""
    trace = tmp_path / f"{case}.vram"
    subprocess.run([build / "tracegen", case, trace, "seed=7"], check=True, capture_output=True)
    recorded, *others = json.loads(subprocess.check_output([vramscope, "whatif", trace, "--json"], text=True))["rows"]
    assert others and all(row["setting"].startswith(prefix) for row in others)
    _, asked = json.loads(subprocess.check_output([vramscope, "whatif", trace, "--allocator", foreign, "--json"], text=True))["rows"]
    assert (asked["name"], asked["setting"]) == (foreign, "")
    text = "max_split_size_mb:128"
    _, asked = json.loads(subprocess.check_output([vramscope, "whatif", trace, "--allocator", text, "--json"], text=True))["rows"]
    assert (asked["name"], asked["setting"]) == (text, f"PYTORCH_CUDA_ALLOC_CONF={text}" if case == "pytorch" else "")
