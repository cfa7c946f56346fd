"""What was recorded of a PyTorch program equals what PyTorch and the program itself say."""
import collections
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
WORKLOAD = HERE / "workload.py"


def between(events, begin, end):
    at = {e["name"]: i for i, e in enumerate(events) if e["event"] == "mark" and e["kind"] == "scope"}
    return events[at[begin] + 1:at[end]]


def memory_events(events):
    """(address, signed bytes) in order."""
    return [[e["address"], e["granted"] if e["event"] == "alloc" else -e["granted"]] for e in events if e["event"] in ("alloc", "free")]


def test_events_equal_the_profilers_one_by_one(record):
    recording = record("profiled")
    theirs = [[address, size] for address, size, _ in recording.said["events"]]
    assert len(theirs) > 1000
    ours = memory_events(between(recording.events(), "begin", "end"))
    # The profiler starts a little before the first mark and stops a little after the last one.
    start = next(i for i in range(50) if theirs[i:i + 20] == ours[:20])
    assert theirs[start:start + len(ours)] == ours
    assert len(theirs) - len(ours) < 50


def test_the_profiler_gets_the_same_events_as_without_us(record, run, torch_python):
    alone = run([torch_python, WORKLOAD, "profiled"], env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python")})
    without = json.loads(alone.stdout.splitlines()[-1])["events"]
    recorded = record("profiled").said["events"]
    assert [size for _, size, _ in without] == [size for _, size, _ in recorded]


def test_totals_follow_pytorchs_own(record):
    """PyTorch reports its running total with each event; ours is the same at each of them."""
    recording = record("profiled")
    window = between(recording.events(), "begin", "end")
    ours = memory_events(window)
    theirs = recording.said["events"]
    start = next(i for i in range(50) if [e[:2] for e in theirs[i:i + 20]] == ours[:20])
    live = theirs[start][2] - theirs[start][1]
    for (_, size), (_, _, total) in zip(ours, theirs[start:]):
        live += size
        assert live == total


def frame_of(text):
    """"Net.forward /x/net.py:7" -> what traceback calls it."""
    function, _, place = text.partition(" ")
    file, _, line = place.rpartition(":")
    return [file, int(line), function.rpartition(".")[2]]


def test_stacks_equal_traceback(record):
    recording = record("stacks")
    expected = {int(size): stack for size, stack in recording.said["stacks"].items()}
    seen = 0
    for event in recording.events():
        if event["event"] != "alloc" or event["requested"] not in expected:
            continue
        seen += 1
        assert [frame_of(text) for text in event["stack"]] == expected[event["requested"]]
    assert seen == len(expected) == 10_000


def test_no_stacks_when_not_wanted_but_labels(record):
    events = record("layers", options=["--stacks", "none"]).events()
    allocs = [e for e in events if e["event"] == "alloc"]
    assert not any(e["stack"] for e in allocs)
    assert any(e["op"] == "blocks.1.mlp.0/Linear" for e in allocs)


def layer_of(event):
    return event["op"].rpartition("/")[0]


def test_forward_blocks_belong_to_the_layer_that_made_them(record):
    recording = record("layers")
    events = recording.events()
    # What a layer returned was the newest block at that address when it returned: read both lists side by side.
    allocs = collections.defaultdict(list)
    for event in events:
        if event["event"] == "alloc" and event["region"] == "forward":
            allocs[event["address"]].append(layer_of(event))
    wrong = [(name, address, allocs[address]) for _, name, address in recording.said["made"] if name not in allocs[address]]
    assert len(recording.said["made"]) == 3 * (1 + 3 * 4 + 1)
    assert not wrong


def test_backward_blocks_belong_to_the_layer_whose_gradient_they_are(record):
    events = record("layers").events()
    layers = collections.defaultdict(set)
    for event in events:
        if event["event"] == "alloc" and event["region"] == "backward" and "/" in event["op"]:
            layer, _, node = event["op"].rpartition("/")
            layers[node].add(layer)
    assert layers["GeluBackward0"] == {f"blocks.{i}.mlp.1" for i in range(3)}
    assert layers["NativeLayerNormBackward0"] == {f"blocks.{i}.norm" for i in range(3)}
    assert layers["EmbeddingBackward0"] == {"embed"}
    assert layers["AddmmBackward0"] == {"head"} | {f"blocks.{i}.mlp.{j}" for i in range(3) for j in (0, 2)}
    assert layers["LogSoftmaxBackward0"] == {"(training loop)"}


def test_tags_tell_what_lives_where(record):
    recording = record("tags")
    tagged = collections.defaultdict(lambda: collections.defaultdict(set))
    for event in recording.events():
        if event["event"] == "tag":
            tagged[event["category"]][event["name"]].add(event["address"])
    for category, places in recording.said.items():
        assert len(places) >= 15
        for name, address in places.items():
            assert address in tagged[category][name], (category, name)


def test_steps_and_phases(record):
    events = record("loader").events()
    steps = [(e["edge"], e["number"]) for e in events if e["event"] == "mark" and e["kind"] == "step"]
    assert steps[:8] == [(edge, number) for number in (1, 2, 3, 4) for edge in ("begin", "end")]
    phases = [e["name"] for e in events if e["event"] == "mark" and e["kind"] == "phase" and e["edge"] == "begin"]
    inside = phases[phases.index("forward"):]
    # Plain SGD allocates nothing, so that its phase does not show.
    assert inside[:8] == ["forward", "backward", "input", "forward", "backward", "input", "forward", "backward"]
    regions = {e["region"] for e in events if e["event"] == "alloc"}
    assert {"input", "forward", "backward"} <= regions


def answer(vramscope, verb, recording, *options):
    return json.loads(subprocess.check_output([vramscope, verb, recording.folder, "--json", *options], text=True))


@pytest.mark.parametrize("critics, in_turns", [(1, 8), (3, 3 + 7)])
def test_optimizers_that_take_turns_make_one_step(vramscope, record, critics, in_turns):
    """The first round shows which one is last. The training run after it is noticed after ten of its steps; the eleventh ends one."""
    steps = answer(vramscope, "steps", record("turns", str(critics)))["steps"]["steps"]
    assert len(steps) == in_turns + 4
    assert not any("ended in it" in step["why"] for step in steps)
    assert len({step["peak"] for step in steps[in_turns - 6:in_turns]}) == 1, "whole rounds need the same"


def test_an_evaluation_is_no_training_step(vramscope, record):
    recording = record("evaluation", "between")
    steps = answer(vramscope, "steps", recording)["steps"]["steps"]
    assert [step["kind"] for step in steps] == ["train"] * recording.said["steps"]
    assert len({step["peak"] for step in steps[1:]}) == 1, "the steps behind an evaluation need what the others need"
    steady = [phase["peak"] for phase in answer(vramscope, "steps", recording)["phases"] if phase["name"] == "steady steps"]
    assert steady == [steps[-1]["peak"]] * 2, "before and behind the evaluation"
    overview = answer(vramscope, "summary", recording)
    text = json.dumps(overview)
    assert "peak-is-evaluation" in text and "in an evaluation" in text, text
    at_peak = answer(vramscope, "peak", recording, "--by", "category")["total"]
    assert at_peak == steps[-1]["peak"] < answer(vramscope, "peak", recording, "--by", "category", "--phase", "all")["total"]


def test_a_model_without_gradients_in_each_step_is_part_of_it(vramscope, record):
    steps = answer(vramscope, "steps", record("evaluation", "teacher"))["steps"]["steps"]
    assert [step["kind"] for step in steps] == ["train"] * 10
    events = record("evaluation", "teacher").events()
    marks = [e for e in events if e["event"] == "mark" and e["kind"] in ("step", "phase") and e["edge"] == "begin"]
    first = [(e["kind"], e["name"]) for e in marks if e["event"] == "mark"]
    assert first.count(("phase", "evaluate")) >= 10
    # The teacher's blocks lie inside the steps: each step allocates for both models.
    assert min(step["allocated"] for step in steps) > 1.5 * max(
        step["allocated"] for step in answer(vramscope, "steps", record("evaluation", "between"))["steps"]["steps"][1:])


def test_a_program_that_only_infers_has_no_steps(vramscope, record):
    steps = answer(vramscope, "steps", record("inference"))
    assert steps["steps"]["steps"] == []


@pytest.mark.parametrize("kind", ["reentrant", "other"])
def test_recomputation_is_told_apart(record, kind):
    events = record("checkpoint", kind).events()
    again = [e for e in events if e["event"] == "alloc" and e["op"].endswith("/recomputation")]
    assert {layer_of(e) for e in again} >= {f"blocks.{i}.mlp.0" for i in range(3)}
    assert {e["region"] for e in again} == {"backward"}


def test_gradients_inside_a_recomputation_are_gradients(record):
    events = record("nested_checkpoint").events()
    unnamed = {e["requested"] for e in events if e["event"] == "alloc" and e["region"] == "backward" and e["op"] == "recomputation"}
    assert unnamed <= {5056}, "no more than the state of the random numbers, which checkpoint() puts back"
    made = {e["op"] for e in events if e["event"] == "alloc" and e["region"] == "backward"}
    # The program calls the three parts of a Sequential, which are "0", "1" and "2" in its named_modules().
    assert {f"{i}.mlp.0/{op}" for i in range(3) for op in ("recomputation", "AddmmBackward0")} <= made


def test_what_an_optimizer_makes_late_is_known_by_its_latest_name(record):
    recording = record("unfrozen")
    tags = {(e["category"], e["address"]): e["name"] for e in recording.events() if e["event"] == "tag"}
    for name, address in recording.said["state"].items():
        assert tags.get(("optimizer_state", address)) == name
    for name, address in recording.said["gradients"].items():
        assert tags.get(("gradient", address)) == name


def test_out_of_memory_is_recorded(record):
    recording = record("oom")
    assert recording.said["error"]
    ooms = [e for e in recording.events() if e["event"] == "oom"]
    assert [e["requested"] for e in ooms] == [4 << 50]
    assert ooms[0]["final"] is True
    assert ooms[0]["stack"][0].startswith("case_oom ")


def test_a_stack_that_is_too_deep_says_what_it_lacks(vramscope, record):
    recording = record("deep")
    stacks = {str(e["requested"]): e["stack"] for e in recording.events() if e["event"] == "alloc" and str(e["requested"]) in recording.said}
    assert len(stacks) == 2
    for size, frames in recording.said.items():
        kept = stacks[size][:-1]
        assert kept[0].startswith("case_deep.<locals>.down ") or kept[0].startswith("down ")
        assert stacks[size][-1].startswith(f"({frames - len(kept)} more frames)")
    assert answer(vramscope, "summary", recording)["cut_stacks"] == 2


def test_compiled_models_do_not_break(record, run, torch_python):
    recording = record("compile", timeout=600)
    alone = json.loads(run([torch_python, WORKLOAD, "compile"], timeout=600, env=dict(os.environ)).stdout.splitlines()[-1])
    assert recording.said == alone
    assert "vramscope:" not in recording.stderr


def test_a_model_that_comes_later_gets_its_names(record):
    events = record("gan").events()
    # Width 48 belongs to the second model: its embedding makes 8 * 16 * 48 floats.
    late = [e["op"] for e in events if e["event"] == "alloc" and e["requested"] == 8 * 16 * 48 * 4 and e["region"] == "forward"]
    assert "Net 2.embed/Embedding" in late[len(late) // 2:]


def test_after_a_backward_pass_that_failed_phases_are_what_they_were(record):
    recording = record("failing")
    assert recording.said["failed"] == 1
    made = [e for e in recording.events() if e["event"] == "alloc" and e["op"] == "blocks.0.mlp.0/Linear"]
    assert len(made) == 6 and {e["region"] for e in made} == {"forward"}


def test_a_model_does_not_get_the_names_of_one_that_is_gone(record):
    recording = record("search")
    events = recording.events()
    tagged = {e["address"]: e for e in events if e["event"] == "tag" and e["category"] == "parameter"}
    for name, address in recording.said.items():
        assert (tagged[address]["name"], tagged[address]["layer"]) == (name, name.rpartition(".")[0])
    states = [e["layer"] for e in events if e["event"] == "tag" and e["category"] == "optimizer_state"][-3 * len(recording.said):]
    assert set(states) == {name.rpartition(".")[0] for name in recording.said}
    forward = [e["op"] for e in events if e["event"] == "alloc" and e["region"] == "forward" and e["requested"] == 4 * 4 * 13]
    assert set(forward) >= {f"net.of5_{i}/Linear" for i in range(7)} and not [op for op in forward if op[:6] == "net.of" and op[6] != "5"]


def test_layers_of_two_models_are_told_apart(vramscope, record):
    recording = record("two_models")
    groups = answer(vramscope, "peak", recording, "--by", "category,layer", "--rows", "0")["groups"]
    assert sorted(g["bytes"] for g in groups if g["keys"][0] == "parameters") == recording.said


def test_names_that_are_not_ascii(vramscope, record):
    recording = record("names")
    tagged = {e["name"] for e in recording.events() if e["event"] == "tag" and e["category"] == "parameter"}
    assert tagged == set(recording.said) == {"schicht_ä.weight", "schicht_ä.bias", "層.weight", "層.bias"}
    for verb, options in (("layers", []), ("peak", ["--by", "layer"])):
        assert {"schicht_ä", "層"} <= set(re.findall(r'"([^"]*)"', json.dumps(answer(vramscope, verb, recording, *options), ensure_ascii=False)))
        printed = subprocess.check_output([vramscope, verb, *options, recording.traces[0]]).decode()
        assert "schicht_ä" in printed and "層" in printed


def test_each_of_several_backward_passes_has_its_activations(vramscope, record):
    recording = record("accumulate")
    groups = answer(vramscope, "peak", recording, "--by", "category", "--rows", "0")["groups"]
    sums = {g["keys"][0]: g["bytes"] for g in groups}
    # The peak is in a backward pass: some of it is free again.
    assert 0.7 * recording.said["kept"] < sums["activations"] <= 1.05 * recording.said["kept"], sums


def test_settings(record):
    settings = {e["key"]: e["value"] for e in record("loader").events() if e["event"] == "setting"}
    assert settings["torch.version"].startswith(("1.13.", "2."))


# Stands in for a card: the calls that PyTorch makes of it when a program sets a limit.
LIMITED = """
import types
import torch
torch._C._cuda_setMemoryFraction = lambda fraction, device: None
torch.cuda._lazy_init = torch.cuda.memory._lazy_init = lambda: None
torch.cuda.current_device = lambda: 1
torch.cuda.get_device_properties = lambda device: types.SimpleNamespace(total_memory=100 << 30)
for module in (torch.cuda.memory, torch.cuda._utils):
    module._get_device_index = lambda device, optional=False, allow_cpu=False: 1
torch.cuda.set_per_process_memory_fraction(0.25)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model(torch.ones(4, 8)).sum().backward()
optimizer.step()
torch.cuda.memory.set_per_process_memory_fraction(0.5, 1)
"""


def test_a_limit_is_recorded_though_it_was_set_before_the_first_tensor(record, tmp_path):
    (tmp_path / "limited.py").write_text(LIMITED)
    limits = [(event["device"], event["bytes"]) for event in record(tmp_path / "limited.py").events() if event["event"] == "pool_limit"]
    assert list(dict.fromkeys(limits)) == [(1, 25 << 30), (1, 50 << 30)]  # the first report of a recording repeats what was known before it


TWICE = """
import sys
import torch
import vramscope
for name in ("first", "second"):
    with vramscope.record(f"{sys.argv[1]}/{name}"):
        kept = torch.ones(1 << 20) if name == "first" else (kept, torch.ones(10))
"""


def test_each_recording_of_a_process_says_what_was_there_before_it(run, vramscope, torch_python, build, root, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(root / "python"), "VRAMSCOPE_BUILD": str(build)}
    run([torch_python, "-c", TWICE, tmp_path], env=environment)
    second, = tmp_path.glob("second*/*.vram")
    events = map(json.loads, subprocess.check_output([vramscope, "dump", "--jsonl", second], text=True).splitlines())
    assert {event["before"] for event in events if event["event"] == "totals"} == {4 << 20}
