"""torch.compile: what compiled code allocates has the layer and the line that it has without the compiler, cache or no cache."""
import collections
import json
import subprocess

import pytest


def at_peak(vramscope, recording):
    """(category, layer, line) -> bytes"""
    text = subprocess.check_output([vramscope, "peak", recording.folder, "--by", "category,layer,line", "--phase", "all", "--rows", "0",
                                    "--json"], text=True)
    out = collections.Counter()
    for group in json.loads(text)["groups"]:
        out[tuple(group["keys"])] += group["bytes"]
    return out


def agreement(one, other):
    return sum(min(one[key], other[key]) for key in one) / sum(one.values())


@pytest.fixture(scope="module")
def eager(vramscope, record):
    return at_peak(vramscope, record("compiled", "none"))


@pytest.mark.parametrize("what", ["model", "blocks"])
def test_a_graph_that_runs_node_by_node_allocates_as_without_the_compiler(vramscope, record, eager, what):
    found = at_peak(vramscope, record("compiled", "aot_eager", what))
    assert agreement(eager, found) > 0.99
    assert not any(key[1] == "" and size > 2048 for key, size in found.items()), found


def test_inductor_fuses_and_the_rest_is_the_same(vramscope, record, eager, tmp_path_factory):
    """Fusing saves some buffers; the others are where they were. Once compiled, once from the compiler's cache."""
    cache = tmp_path_factory.mktemp("inductor")
    for turn in ("compiled", "from the cache"):
        env = {"TORCHINDUCTOR_CACHE_DIR": str(cache), "TURN": turn}
        found = at_peak(vramscope, record("compiled", "inductor", env=env))
        unknown = sum(size for key, size in found.items() if key[0] == "unknown" or not key[1])
        assert unknown <= 0.01 * sum(found.values())
        assert agreement(eager, found) > 0.9, (turn, found)
        assert {key[2].partition(":")[0] for key in found} == {"workload.py"}
    steps = json.loads(subprocess.check_output([vramscope, "steps", record("compiled", "inductor", env=env).folder, "--json"], text=True))
    assert len(steps["steps"]["steps"]) == 4
