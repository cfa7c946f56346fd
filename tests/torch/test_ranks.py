"""Several processes in one run folder, each with its rank."""
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

RANKS = Path(__file__).resolve().parent / "ranks.py"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture(scope="module", params=["torchrun", "spawn"])
def folder(request, vramscope, run, torch_python, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param) / "out"
    program = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port(), RANKS] if request.param == "torchrun" \
        else [RANKS, "spawn", free_port()]
    run([vramscope, "run", "-o", out, "--quiet", "--", torch_python, *program], timeout=600, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return out


def summary(vramscope, *arguments):
    return json.loads(subprocess.check_output([vramscope, "summary", "--json", *map(str, arguments)], text=True))


def test_each_rank_has_its_trace(vramscope, folder):
    text = subprocess.check_output([vramscope, "summary", folder], text=True)
    assert "Rank 1 stands out" in text or "Rank 0 stands out" in text, text
    assert "  RANK        PEAK" in text
    peaks = [summary(vramscope, folder, "--rank", str(rank))["pools"][0]["peak_bytes"] for rank in (0, 1)]
    assert peaks[1] - peaks[0] >= 2 * (4 << 20)


def test_every_rank_is_compared_and_the_odd_one_named(vramscope, folder):
    ranks = summary(vramscope, folder)["ranks"]
    assert [entry["rank"] for entry in ranks["ranks"]] == [0, 1], "the workers of the data loader are none"
    assert ranks["stands_out"] == 1
    compared = json.loads(subprocess.check_output([vramscope, "diff", "--json", folder], text=True))
    assert compared["sentence"].startswith("Rank 1 stands out")
    assert [side["name"] for side in compared["sides"]] == ["rank 0", "rank 1"]
    again = json.loads(subprocess.check_output([vramscope, "diff", "--json", "--rank", "1", folder, folder], text=True))
    assert "need the same" in again["sentence"]


def test_workers_of_the_data_loader_say_so(vramscope, folder):
    roles = []
    for trace in folder.glob("*.vram"):
        text = subprocess.check_output([vramscope, "dump", "--jsonl", "--no-stacks", trace], text=True)
        settings = {e["key"]: e["value"] for e in map(json.loads, text.splitlines()) if e["event"] == "setting"}
        roles.append((settings.get("role"), None if "role" in settings else settings.get("rank")))
    assert sorted(roles, key=str) == sorted([(None, "0"), (None, "1"), ("DataLoader worker", None), ("DataLoader worker", None)], key=str)


@pytest.mark.parametrize("verb", ["ledger", "peak", "steps", "layers", "leaks", "fragmentation", "oom", "report"])
def test_verbs_take_a_rank(vramscope, run, folder, tmp_path, verb):
    more = ["-o", tmp_path / "report.html"] if verb == "report" else []
    done = run([vramscope, verb, folder, "--rank", "1", *more], code=None)
    assert done.returncode == 0 or "built without its user interface" in done.stderr, done.stderr
    assert "there are 0, 1" in run([vramscope, verb, folder, "--rank", "5", *more], code=2).stderr


@pytest.mark.parametrize("launcher,variables", [
    ("slurm", ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID")),
    ("openmpi", ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")),
    ("mpich", ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID")),
    ("torchrun", ("RANK", "WORLD_SIZE", "LOCAL_RANK"))])
def test_variables_of_launchers(vramscope, run, tmp_path, launcher, variables):
    ranks = " & ".join(f"{variables[0]}={4 + i} {variables[1]}=8 {variables[2]}={i} {sys.executable} -c 'import vramscope; vramscope.mark(\"x\")'"
                       for i in range(2))
    run([vramscope, "run", "-o", tmp_path / "out", "--quiet", "--", "sh", "-c", f"{ranks}; wait"])
    for rank in (4, 5):
        text = run([vramscope, "dump", "--jsonl", tmp_path / "out", "--rank", rank]).stdout
        settings = {e["key"]: e["value"] for e in map(json.loads, text.splitlines()) if e["event"] == "setting"}
        assert (settings["launcher"], settings["rank"], settings["world_size"], settings["local_rank"]) == (launcher, str(rank), "8", str(rank - 4))


def test_an_unknown_rank_is_refused(vramscope, run, folder):
    done = run([vramscope, "summary", folder, "--rank", "7"], code=2)
    assert "there are 0, 1" in done.stderr


def test_buffers_of_ddp_and_fsdp_are_named(vramscope, folder):
    text = subprocess.check_output([vramscope, "dump", "--jsonl", "--no-stacks", folder, "--rank", "0"], text=True)
    allocs = [event for event in map(json.loads, text.splitlines()) if event["event"] == "alloc"]
    buckets = [event for event in allocs if event["op"] == "DDP buckets"]
    # One bucket holds all gradients. It is made with the model, and again before the second forward pass, in the order in which
    # gradients came.
    whole = [event["region"] for event in buckets if event["requested"] == 257 * 256 * 4]
    assert whole.count("forward") == 1 and len(whole) >= 2, buckets
    gathered = {(event["op"].rpartition("/")[2], event["region"]) for event in allocs if "FSDP " in event["op"]}
    assert {("FSDP all-gather", "forward"), ("FSDP all-gather", "backward"), ("FSDP reduce-scatter", "backward")} <= gathered
