"""What Keras users see of memory, against TensorFlow's own counters, Keras' own step numbers and TensorBoard's own reader."""
import csv
import importlib
import json
import os
import re

import pytest

from tensorflow_support import HERE, Recording

MIB = 1 << 20
BATCHES, EPOCHS, TARGETS = 4, 3, [1, 3]


def scalars(folder):
    """{tag: {step: value}}, as TensorBoard reads it."""
    reader = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(folder), size_guidance={reader.TENSORS: 0})
    events.Reload()

    def value(proto):
        return proto.double_val[0] if proto.double_val else proto.float_val[0] if proto.float_val else None

    return {tag: {event.step: value(event.tensor_proto) for event in events.Tensors(tag)} for tag in events.Tags()["tensors"]}


@pytest.fixture(scope="module", params=["2.21 recorded", "2.16"])
def said(request, root, build, vramscope, run, python_with, tmp_path_factory):
    """What the program said, the folder that it ran in, and whether it was recorded there (out)."""
    version, recorded = request.param.split()[0], "recorded" in request.param
    folder = tmp_path_factory.mktemp("keras")
    plots = root / ".cache/plots" if version == "2.21" else ""  # matplotlib; without it the plot is ours
    environment = {**os.environ, "PYTHONPATH": f"{root / 'python'}:{plots}", "VRAMSCOPE_BUILD": str(build), "TF_CPU_ALLOCATOR_USE_BFC": "1",
                   "CUDA_VISIBLE_DEVICES": "", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    before = [vramscope, "run", "-o", folder / "out", "--quiet", "--"] if recorded else []
    done = run([*before, python_with(version), HERE / "keras_numbers.py"], env=environment, cwd=folder)
    return {**json.loads(done.stdout.splitlines()[-1]), "matplotlib": bool(plots)}, done.stdout, folder


def ends(rows, phase, batches):
    """(epoch, batch) -> (current, peak), at the end."""
    return {(row[1], row[2]): (row[5], row[6]) for row in rows if row[0] == phase and row[3] == "end" and (row[2] is not None) == batches}


def test_rows_history_csv_and_plot_agree(said):
    answer, printed, folder = said
    rows = answer["agreeing"]["rows"]
    assert [[column[place] for column in answer["agreeing"]["history"].values()] for place in range(len(rows))] == rows
    with open(folder / "memory.csv", newline="") as file:
        read = list(csv.reader(file))
    assert read[0] == list(answer["agreeing"]["history"]) and read[1:] == [["" if cell is None else str(cell) for cell in row] for row in rows]
    assert answer["agreeing"]["table"] in printed, "summary() prints the table"
    # The peak of an epoch is its training's, although the validation reset it: TensorFlow's highest reading.
    epochs = ends(rows, "train", False)
    assert [epochs[epoch, None][1] for epoch in range(1, EPOCHS + 1)] == [max(pair) for pair in answer["agreeing"]["epochs"]]
    assert all(before > after for before, after in answer["agreeing"]["epochs"])
    assert answer["agreeing"]["keras"] == [peak / MIB for _, peak in epochs.values()]
    assert bool(answer["agreeing"]["drawn"]) == answer["matplotlib"]
    if answer["matplotlib"]:
        drawn = sorted(map(sorted, answer["agreeing"]["drawn"]))
        wanted = [[row[6] / MIB for row in rows if row[3] == "end" and row[0] == phase and (row[2] is not None) == batches]
                  for phase in ("train", "evaluate") for batches in (False, True)]
        wanted.append([row[5] / MIB for row in rows if row[3] == "end"])
        assert drawn == sorted(map(sorted, wanted))
        assert answer["agreeing"]["labels"][-1] == f"epoch {EPOCHS}"
        assert all(re.fullmatch(r"epoch \d(, evaluate)?(, batch \d)?", label) for label in answer["agreeing"]["labels"])


def test_tensorboard_has_the_same_values_where_keras_has_its_own(said):
    answer, _, folder = said
    rows, ours, keras = answer["agreeing"]["rows"], scalars(folder / "logs/memory"), scalars(folder / "logs/train")
    assert list(ours["memory/train/CPU:0/peak (MiB)"]) == list(keras["epoch_loss"]) == [0, 1, 2]
    for phase in ("train", "evaluate"):
        whole, batches = ends(rows, phase, False), ends(rows, phase, True)
        for place, name in enumerate(("current", "peak")):
            assert ours[f"memory/{phase}/CPU:0/{name} (MiB)"] == {epoch - 1: values[place] / MIB for (epoch, _), values in whole.items()}
            of_batches = ours[f"memory/{phase} batch/CPU:0/{name} (MiB)"]
            assert list(of_batches.values()) == [values[place] / MIB for values in batches.values()]
    steps = list(ours["memory/train batch/CPU:0/peak (MiB)"])
    assert steps == [epoch * BATCHES + batch for epoch in range(EPOCHS) for batch in TARGETS]
    assert set(steps) <= set(keras["batch_loss"]) and max(keras["batch_loss"]) == EPOCHS * BATCHES


def test_each_model_is_compared_by_itself(said):
    answer = said[0]["compared"]
    peaks = {name: columns["train peak"] for name, columns in answer["functions"].items()}
    # How many activations of the small model are alive at once depends on TensorFlow's threads; what the large one leaves behind is far more.
    activation = 256 * 64 * 4
    assert peaks["large"] > 4 * peaks["first"] and abs(peaks["again"] - peaks["first"]) < 4 * activation < peaks["large"] / 20
    assert "measured by itself" in answer["said"][0] and len(answer["said"]) == 1
    assert list(answer["seconds"]) == list(peaks) and 0.5 < answer["seconds"]["again"] / answer["stopwatch"] < 2
    # Callbacks that know nothing of each other, the larger model first; TensorFlow's own peak says the same of the smaller one.
    peaks = {name: columns["train peak"] for name, columns in answer["callbacks"].items()}
    assert peaks["small"] == answer["alone"] and peaks["large"] > 2 * peaks["small"]
    before = answer["callbacks"]["beside another"]["in use before"]
    assert before >= answer["left"] and peaks["beside another"] >= answer["left"]
    assert any(note.startswith("beside another: ") and "part of its peak" in note for note in answer["notes"])


def test_all_devices_and_all_names(said):
    answer = said[0]["devices"]
    assert answer["every"] and {name: {"current": current, "peak": peak} for name, current, peak in answer["every"]} == answer["counted"]
    assert set(answer["by name"]) == {answer["counted"]["CPU:0"]["current"]} and len(answer["by name"]) == 4
    assert answer["now"]["peak"] == answer["now"]["current"] == answer["get"]["current"]
    assert answer["table"].splitlines()[0].split() == ["device", "current", "peak", "limit", "pool"] and "CPU:0" in answer["table"]


def test_a_logger_has_the_programs_own_step(said):
    answer, _, folder = said
    assert list(scalars(folder / "steps")["memory/CPU:0/current (MiB)"]) == [0, BATCHES, 2 * BATCHES, 3 * BATCHES, 1000]
    assert answer["logged"] == "step='twelve': expected a counter, or a function that returns an integer"


def test_containers_of_variables_are_named_and_garbage_is_not_a_leak(said):
    answer = said[0]["held"]
    assert "many[3], global of __main__" in answer["said"][0] and "table['weights']['kernel'], global of __main__" in answer["said"][1]
    assert "many[2], global of __main__" in answer["said"][2]
    assert answer["said"][3].startswith("a cycle of Node, which") and "gc.collect() frees it" in answer["said"][3]
    assert answer["gone"] and answer["freed"] >= 64 * 64 * 4


def test_a_recorded_trace_goes_to_tensorboard_step_by_step(said, vramscope, monkeypatch):
    answer, printed, folder = said
    if not (folder / "out").exists():
        pytest.skip("recorded on the newest TensorFlow alone")
    monkeypatch.setenv("VRAMSCOPE_BUILD", str(vramscope.parent))
    from vramscope import tensorboard
    trace = Recording(vramscope, folder / "out", printed).trace
    written = tensorboard.write_trace(folder / "out", folder / "board")
    assert [path.parent for path in written] == [folder / "board"]
    read = scalars(folder / "board")
    peaks = read["memory/train/host/peak (MiB)"]
    assert list(peaks) == list(range(1, max(peaks) + 1)) and len(peaks) > len(answer["peaks"])
    # TensorFlow's own peak of each of the first steps; the first one also builds the optimizer's state.
    assert [peaks[step] * MIB for step in range(2, len(answer["peaks"]) + 1)] == answer["peaks"][1:]
    assert list(read["time/train/step (ms)"]) == list(peaks) and all(value > 0 for value in read["time/train/step (ms)"].values())
    reader = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(folder / "board"), size_guidance={reader.TENSORS: 0})
    events.Reload()
    times = [event.wall_time for event in events.Tensors("memory/train/host/peak (MiB)")]
    ended = trace.stat().st_mtime
    assert times == sorted(times) and ended - 3600 < times[0] < times[-1] < ended + 1
    with pytest.raises(FileNotFoundError):
        tensorboard.write_trace(trace.with_name("none.vram"), folder / "board")
