"""Several processes in one run folder, each with its rank."""
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

RANKS = Path(__file__).resolve().parent / "ranks.py"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture(scope="module", params=["torchrun", pytest.param("spawn", marks=pytest.mark.xfail(
    reason="a known defect: mp.spawn sets RANK in the child after the environment was read", strict=False))])
def folder(request, vramscope, run, torch_python, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param) / "out"
    program = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port(), RANKS] if request.param == "torchrun" \
        else [RANKS, "spawn", free_port()]
    run([vramscope, "run", "-o", out, "--quiet", "--", torch_python, *program], timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return out


def summary(vramscope, *arguments):
    return json.loads(subprocess.check_output([vramscope, "summary", "--json", *map(str, arguments)], text=True))


def test_each_rank_has_its_trace(vramscope, folder):
    text = subprocess.check_output([vramscope, "summary", folder], text=True)
    assert "Rank 1 stands out" in text or "Rank 0 stands out" in text, text
    assert "  rank  peak" in text
    peaks = [summary(vramscope, folder, "--rank", str(rank))["pools"][0]["peak_bytes"] for rank in (0, 1)]
    assert peaks[1] - peaks[0] >= 2 * (4 << 20)


def test_an_unknown_rank_is_refused(vramscope, run, folder):
    done = run([vramscope, "summary", folder, "--rank", "7"], code=2)
    assert "there are 0, 1" in done.stderr


def test_buckets_of_ddp_are_named(vramscope, folder):
    text = subprocess.check_output([vramscope, "dump", "--jsonl", "--no-stacks", folder, "--rank", "0"], text=True)
    assert any(event.get("op") == "DDP buckets" for event in map(json.loads, text.splitlines()))
