"""What is recorded of JAX's programs through the real C interface of a plugin: names, arguments, steps, compilations. On the CPU."""
import json
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PARAMETERS = {f"params['{layer}']['{leaf}']": layer for layer in ("dense_0", "dense_1") for leaf in ("kernel", "bias")}


@pytest.fixture(scope="session")
def record(vramscope, run, jax_python, plugin_environment, tmp_path_factory):
    """record(case) -> (what the program printed, events of its trace)"""
    kept = {}

    def call(case, **variables):
        if case not in kept:
            folder = tmp_path_factory.mktemp("recording") / "out"
            done = run([vramscope, "run", "-o", folder, "--quiet", "--", jax_python, HERE / "cpu_programs.py", case],
                       env={**plugin_environment, **variables})
            trace, = folder.glob("*.vram")
            dump = subprocess.check_output([vramscope, "dump", "--jsonl", trace], text=True)
            kept[case] = json.loads(done.stdout.splitlines()[-1]), [json.loads(line) for line in dump.splitlines()]
        return kept[case]

    return call


def step_marks(events):
    return [event for event in events if event["event"] == "mark" and event["kind"] == "step"]


def compilations(events):
    return [event["detail"] for event in events if event["event"] == "mark" and event["kind"] == "phase" and event["edge"] == "begin"
            and event["name"] == "compile"]


def tags(events):
    """The tags of addresses of data. The plugin has no allocator that is recorded, so there are others, of PJRT's objects: of those that
    exist at that time, since data may lie where an object was."""
    objects, out = {}, []
    for event in events:
        if event["event"] == "alloc":
            objects[event["ordinal"]] = event["address"]
        elif event["event"] == "free":
            objects.pop(event["alloc"], None)
        elif event["event"] == "tag" and event["address"] not in objects.values():
            out.append(event)
    return out


def by_step(events):
    """For each step, the tags of its arguments."""
    out, wanted = [], {id(tag) for tag in tags(events)}
    for event in events:
        if event["event"] == "mark" and event["kind"] == "step":
            out.append([])
        elif id(event) in wanted:
            out[-1].append(event)
    return out


@pytest.mark.parametrize("case", ["donated", "kept"])
def test_arguments_are_where_jax_says(record, case):
    said, events = record(case)
    known = {}      # by name: the last address that was reported
    steps = by_step(events)
    assert len(steps) == said["steps"] == len(step_marks(events))
    for of_step, addresses in zip(steps, said["addresses"]):
        known.update({tag["name"]: tag["address"] for tag in of_step})
        assert known == addresses


def test_categories_and_layers_of_arguments(record):
    _, events = record("donated")
    newest = {event["name"]: event for event in tags(events)}
    assert len(newest) == 9
    for name, tag in newest.items():
        wanted = "input" if name == "batch" else "parameter" if name in PARAMETERS else "optimizer_state"
        assert tag["category"] == wanted, tag
        assert tag["layer"] == ("" if name == "batch" else PARAMETERS[name.replace("opt_state", "params")]), tag
        assert tag["bytes"] == (8 * 32 * 4 if name == "batch" else 32 * 32 * 4 if "kernel" in name else 32 * 4), tag


def test_donated_state_is_not_reported_again_but_batches_are(record):
    said, events = record("donated")
    names = [event["name"] for event in tags(events)]
    assert names.count("batch") == said["steps"]
    # Twice for those that share their memory with NumPy at first: such an array cannot be donated.
    assert all(names.count(name) <= 2 for name in PARAMETERS)
    assert names.index("batch") == 8 and len(names) <= 8 + 8 + said["steps"]


def test_each_compilation_is_a_phase(record):
    said, events = record("recompiled")
    assert compilations(events).count("jit_train_step") == said["steps"]
    assert len(step_marks(events)) == said["steps"], "a program that is compiled again goes on with the steps"
    _, events = record("donated")
    assert compilations(events).count("jit_train_step") == 1


def test_recompilation_says_which_argument_changed(record):
    said, events = record("recompiled")
    reports = [event for event in events if event["event"] == "retrace"]
    assert [report["traces"] for report in reports] == list(range(3, said["steps"] + 1)), "the last one has the number of all"
    assert reports[-1]["function"] == "train_step"
    assert reports[-1]["reason"] == "batch was f32[12,32], and is f32[13,32]"
    assert reports[-1]["file"].endswith("cpu_programs.py")
    assert not [event for event in record("donated")[1] if event["event"] == "retrace"]


def test_recompilation_is_that_of_one_function(record):
    """Not of another one with its name, nor of an op of a library for a few shapes."""
    said, events = record("same_names")
    reports = [event for event in events if event["event"] == "retrace"]
    wanted = next(i for i, text in enumerate((HERE / "cpu_programs.py").read_text().splitlines(), 1) if "# made again" in text)
    assert said["times"] >= 5 and {(report["function"], report["line"]) for report in reports} == {("lambda", wanted)}, reports
    assert max(report["traces"] for report in reports) == said["times"]


def test_recompilation_names_static_values(record):
    said, events = record("static_values")
    lines = {text.split("# compiled")[1]: i for i, text in enumerate((HERE / "cpu_programs.py").read_text().splitlines(), 1) if "# compiled" in text}
    reports = {line: [event for event in events if event["event"] == "retrace" and event["line"] == line] for line in lines.values()}
    last = reports[lines[""]][-1]
    assert (last["function"], last["traces"]) == ("scaled", said["times"]) == ("scaled", 9)
    assert last["reason"] == "rate was 7.5, and is 8.5"
    assert reports[lines[" for objects"]][-1]["reason"] == "settings is another Settings"


def test_variables_of_nnx(record):
    said, events = record("nnx")
    newest = {event["name"]: event for event in events if event["event"] == "tag"}
    assert len(step_marks(events)) == said["steps"]
    wanted = {"model" + path: ("parameter", size) for path, size in said["parameter"].items()}
    wanted |= {"model" + path: ("buffer", size) for path, size in said["batch_stats"].items()}
    wanted |= {"optimizer" + path: ("optimizer_state", size) for path, size in said["optimizer_state"].items()}
    found = {name: (tag["category"], tag["bytes"]) for name, tag in newest.items() if name in wanted}
    # The number of updates is an argument of no program: only its successor is computed.
    assert found == {name: truth for name, truth in wanted.items() if name in found} and len(found) >= len(wanted) - 1, set(wanted) - set(found)
    assert newest["batch"]["category"] == "input"
    assert newest["model.layers[1].kernel"]["layer"] == newest["optimizer.opt_state[0].mu.layers[1].kernel"]["layer"] == "layers/1"
    assert newest["model.key.kernel"]["layer"] == "key"


def test_state_of_nnx_is_not_donated(record):
    said, events = record("nnx")
    report, = [event for event in events if event["event"] == "state_not_donated"]
    assert report["arguments"] == "model optimizer metrics" and report["function"] == "train_step"
    state = sum(size for kind in ("parameter", "batch_stats", "optimizer_state") for size in said[kind].values())
    assert state <= report["bytes"] < state + 64, "and a few counters"
    # The remedy, with the arguments that the report names.
    _, events = record("nnx_donated")
    assert not [event for event in events if event["event"] in ("state_not_donated", "donation_failed")]


def test_arguments_of_pmap_have_their_paths(record):
    said, events = record("pmapped")
    newest = {event["name"]: event for event in tags(events)}
    assert said["devices"] >= 2 and len(step_marks(events)) == said["steps"]
    assert {name: (tag["category"], tag["layer"]) for name, tag in newest.items()} == {
        **{name: ("parameter", layer) for name, layer in PARAMETERS.items()},
        **{name.replace("params", "momentum"): ("optimizer_state", layer) for name, layer in PARAMETERS.items()},
        "batch": ("input", ""), "rate": ("input", "")}
    assert newest["params['dense_0']['kernel']"]["bytes"] == 32 * 32 * 4, "of one device"


def not_donated(events):
    return {event["function"]: event["bytes"] for event in events if event["event"] == "state_not_donated"}


def test_gradients_are_not_the_next_parameters(record):
    said, events = record("gradients_apart")
    assert not_donated(events) == dict.fromkeys(said["updates"], said["bytes"])
    assert not_donated(record("gradients_apart_donated")[1]) == {}, "it ran to its end: nothing that is still needed was donated"


def test_one_network_counts_the_steps(record):
    """The first of the two, from its second run on: until then, something else had trained as often."""
    said, events = record("two_networks")
    assert len(step_marks(events)) == 1 + said["steps"] - 1


def test_steps_that_the_program_reports_come_first(record):
    said, events = record("reported_steps")
    assert [mark["name"] for mark in step_marks(events)] == ["step"] * said["steps"]


def live_at_end(events):
    """Bytes by pool, at the mark that the program left."""
    live, sizes = {}, {}
    for event in events[:next(i for i, e in enumerate(events) if e["event"] == "mark" and e.get("name") == "end")]:
        if event["event"] == "alloc" and "arrays" in event["pool"]:
            sizes[event["ordinal"]] = event["pool"], event["granted"]
            live[event["pool"]] = live.get(event["pool"], 0) + event["granted"]
        elif event["event"] == "free" and event["alloc"] in sizes:
            pool, size = sizes.pop(event["alloc"])
            live[pool] -= size
    return live


@pytest.mark.parametrize("case", ["donated", "kept"])
def test_arrays_of_a_plugin_without_allocator_are_those_that_jax_has(record, case):
    said, events = record(case)
    assert said["live"] > 2 * 4 * 32 * 32
    assert live_at_end(events) == {"CPU_0 arrays": said["live"]}


def test_two_plugins_in_one_process(record, plugin_environment, tmp_path):
    first = plugin_environment["PJRT_NAMES_AND_LIBRARY_PATHS"]
    second = shutil.copy(first.partition(":")[2], tmp_path / "second.so")
    said, events = record("two_plugins", PJRT_NAMES_AND_LIBRARY_PATHS=f"{first},second:{second}", JAX_PLATFORMS="xla_cpu,second")
    assert len(said["platforms"]) == 2
    weights = [event for event in events if event["event"] == "alloc" and event["granted"] == 256 * 256 * 4]
    assert len(weights) == 2 * (1 + said["steps"]), "on each: one that was put there, and one from each step"
    assert sum(live_at_end(events).values()) == said["live"]
