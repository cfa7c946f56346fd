"""What vramscope says of JAX's arrays at the interface of a plugin, against programs that know each of them."""
import json
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def record(vramscope, run, jax_python, plugin_environment, tmp_path_factory):
    """record(case) -> (what the program printed, its trace)"""
    kept = {}

    def call(case):
        if case not in kept:
            folder = tmp_path_factory.mktemp("recording") / "out"
            done = run([vramscope, "run", "-o", folder, "--quiet", "--", jax_python, HERE / "known_programs.py", case], env=plugin_environment)
            kept[case] = json.loads(done.stdout.splitlines()[-1]), *folder.glob("*.vram")
        return kept[case]

    return call


@pytest.fixture(scope="module")
def ask(vramscope):
    return lambda trace, verb, *options: json.loads(subprocess.check_output([vramscope, verb, "--json", trace, *options]))


def test_a_leak_is_as_large_as_what_jax_keeps(record, ask):
    said, trace = record("leak")
    grows = {after - before for before, after in zip(said["live"][1:], said["live"][2:])}
    assert len(grows) == 1, "the same in every step"
    grown, leaks = grows.pop(), ask(trace, "leaks")
    assert leaks["bytes_per_step"] == pytest.approx(grown, rel=1e-9) and leaks["so_far"] % grown == 0, (leaks, grown)
    assert leaks["so_far"] == grown * (leaks["step_number"][-1] - leaks["since_step"] + 1)


def categories_at(ask, trace, instant):
    """Bytes by category and by layer of the network."""
    out = {}
    for group in ask(trace, "peak", "--at", instant, "--by", "category,layer", "-n", "0")["groups"]:
        category, layer = group["keys"]
        of_category = out.setdefault(category, {})
        layer = "" if category == "inputs" else layer
        of_category[layer] = of_category.get(layer, 0) + group["bytes"]
    return out


@pytest.mark.parametrize("case, instant", [("whole", "steady"), ("whole", "step:7"), ("gradients_apart", "end"), ("unnamed", "end")])
def test_each_array_is_what_the_program_says(record, ask, case, instant):
    said, trace = record(case)
    found = categories_at(ask, trace, instant)
    # The number of updates is in the state of the optimizer, and in no layer.
    found["optimizer state"].pop("", None)
    assert {category: found[category] for category in said["categories"]} == said["categories"], found
    assert sum(sum(layers.values()) for category, layers in found.items() if category not in said["categories"]) <= said["rest"] <= 64, found


def test_bare_arrays_in_tuples_are_told_by_what_the_program_does_with_them(record, ask):
    said, trace = record("tuples")
    found = {category: sum(layers.values()) for category, layers in categories_at(ask, trace, "end").items()}
    wanted = {category: sum(layers.values()) for category, layers in said["categories"].items()}
    assert {category: found.pop(category) for category in wanted} == wanted
    assert sum(found.values()) == said["rest"], "what the network predicts"


def test_no_allocator_is_invented_for_arrays(record, ask):
    """They were recorded at the interface of the plugin, and nothing is known of what gives them memory."""
    said, trace = record("whole")
    answer = ask(trace, "whatif")
    text = json.dumps(answer)
    assert not [word for word in ("BFC", "TF_GPU_ALLOCATOR", "PREALLOCATE") if word in text], answer
    assert "The allocator was not recorded" in text, answer


def test_what_the_program_tags_counts(record, ask):
    said, trace = record("tagged")
    found = categories_at(ask, trace, "end")
    assert {category: sum(layers.values()) for category, layers in found.items()} == said
    assert found["buffers"] == {"block_3": said["buffers"]}
