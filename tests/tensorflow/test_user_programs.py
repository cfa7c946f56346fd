"""What is said about programs as users write them, against TensorFlow's own counter, the kernel's count and a stopwatch."""
import json

import pytest

from tensorflow_support import HERE

PROGRAM = HERE / "user_programs.py"
MIB = 1 << 20
BUFFER, ELEMENT, BATCH = 512, 16 << 10, 30          # as in the program


def line_of(function, words):
    """Of the first line with these words in a program."""
    text = PROGRAM.read_text()
    begin = text.index(f"def {function}(")
    return f"{PROGRAM.name}:{text[:text.index(words, begin)].count(chr(10)) + 1}"


@pytest.fixture
def asked(record, run, vramscope, newest_tensorflow, tmp_path):
    """asked(program, verb, ...) -> (what the program said, the answer of each verb)."""

    def call(name, *verbs, python=newest_tensorflow, options=()):
        recording = record([python, PROGRAM, name], options)
        return recording.said, *(json.loads(run([vramscope, verb, "--json", tmp_path / "out"]).stdout) for verb in verbs)

    return call


def findings(summary):
    return {finding["id"]: finding for finding in summary["findings"]["findings"]}


@pytest.mark.parametrize("version", ["2.21", "2.16"])
def test_graphs_add_what_the_kernel_counts(asked, python_with, version):
    said, host = asked("graphs", "host", python=python_with(version))
    graphs = {(graph["function"], graph["line"]): graph for graph in host["graphs"]}
    outer, inner = (graphs[name, line_of("graphs", f"@tf.function\n    def {name}")] for name in ("outer", "inner"))
    assert (outer["traces"], inner["traces"]) == (3, 3)
    assert inner["ops"] >= 3 * 1000 * 2 and outer["ops"] >= 3 * 500 * 2
    # Retracing adds up, and what the inner function adds is not counted twice. Between the program's looks there is little but tracing.
    assert abs(outer["bytes"] + inner["bytes"] - said["grown"]) < 0.15 * said["grown"] + MIB, (host["graphs"], said)
    assert inner["bytes"] > 0 and "Building graphs added" in host["sentence"]


def test_graphs_of_keras_have_the_line_that_has_them_traced(asked):
    said, host = asked("layers", "host")
    traced = sum(graph["bytes"] for graph in host["graphs"] if graph["line"] == line_of("layers", "model.fit("))
    assert 0.2 * said["trained"] < traced <= said["trained"] + MIB, (host["graphs"], said)


@pytest.mark.parametrize("version", ["2.21", "2.16"])
def test_building_layers_adds_what_the_kernel_counts(asked, python_with, version):
    said, host = asked("building", "host", python=python_with(version))
    rows = [graph for graph in host["graphs"] if graph["line"] == line_of("building", "x = keras.layers.Dense(8)(x)")]
    layers, = (row for row in rows if row["function"] == "layers")
    assert layers["ops"] == 300
    # Between two calls the program creates the layer itself, which is part of what it counts.
    assert 0.7 * said["grown"] < sum(row["bytes"] for row in rows) <= said["grown"] + MIB, (rows, said)


def test_a_graph_of_a_session_is_measured_when_it_runs(asked):
    said, host = asked("session", "host")
    graph, = (graph for graph in host["graphs"] if graph["function"] == "graph")
    assert graph["line"] == line_of("session", "v1.placeholder") and graph["traces"] == 1 and graph["ops"] >= 4000
    assert 0.8 * said["built"] - MIB < graph["bytes"] < 1.2 * said["built"] + MIB, (graph, said)


@pytest.mark.parametrize("version", ["2.21", "2.18", "2.16"])
def test_the_input_pipeline_by_stage(asked, python_with, version):
    said, host = asked("pipeline", "host", python=python_with(version))
    stages = {stage["op"]: stage for stage in host["stages"]}
    assert list(stages) == ["from_tensor_slices", "map", "shuffle", "batch", "prefetch"]
    assert {op: stages[op]["line"] for op in stages} == {
        "from_tensor_slices": line_of("pipeline", "source = "), "map": line_of("pipeline", "mapped = "),
        "shuffle": line_of("pipeline", "shuffled = "), "batch": line_of("pipeline", "batches = "),
        "prefetch": line_of("pipeline", "batches = ")}
    assert stages["from_tensor_slices"]["most"] == said["source"]
    assert (stages["shuffle"]["elements"], stages["shuffle"]["most"]) == (BUFFER, BUFFER * ELEMENT)
    assert (stages["prefetch"]["elements"], stages["prefetch"]["each"]) == (2, BATCH * ELEMENT)
    if version == "2.16":                           # does not tell
        assert stages["shuffle"]["counted"] is None
        return
    # TensorFlow's count of the buffer, and the pool's: it holds the buffer, two batches ahead, the next one and the one in use.
    counted = stages["shuffle"]["counted"]
    assert abs(counted - BUFFER * ELEMENT) < 0.1 * BUFFER * ELEMENT
    # The pool gives a free block that is less than twice the request away as a whole, and counts all of it.
    assert all(counted <= held < 2 * (counted + 4 * BATCH * ELEMENT) for held in said["held"]), (host["stages"], said)


def live_by(run, vramscope, folder, key):
    """Bytes and blocks at the steady peak, by a key of the blocks."""
    answer = json.loads(run([vramscope, "peak", "--by", key, "--json", folder]).stdout)
    return {group["keys"][0]: (group["bytes"], group["count"]) for group in answer["groups"]}


def test_blocks_of_a_pipeline_have_the_line_of_their_stage(asked, run, vramscope, tmp_path):
    """They are allocated in threads of TensorFlow's, without an op and without a stack."""
    said, host = asked("shuffled", "host")
    by_line, by_category = (live_by(run, vramscope, tmp_path / "out", key) for key in ("line", "category"))
    counted = next(stage["counted"] for stage in host["stages"] if stage["op"] == "shuffle")
    buffer, batches = (by_line[line_of("shuffled", words)] for words in ("data.shuffle", "data.batch"))
    assert abs(buffer[0] - counted) < 0.1 * counted and abs(buffer[1] - BUFFER) < 0.1 * BUFFER
    # What TensorFlow's pool holds beside its state before the loop is the buffer, the batches and little else.
    assert 0.8 * said["held"] < buffer[0] + batches[0] < 1.2 * said["held"]
    assert by_line.get("", (0, 0))[0] < 0.05 * said["held"] and by_category.get("unknown", (0, 0))[0] < 0.05 * said["held"]


def test_what_a_function_of_the_pipeline_computes_is_input(asked, run, vramscope, tmp_path):
    """The op "add" of map(), in the same threads as the ops of the training step."""
    asked("pipeline")
    by_line, by_category = (live_by(run, vramscope, tmp_path / "out", key) for key in ("line", "category"))
    assert by_line[line_of("pipeline", "mapped = ")][0] >= 0.9 * BUFFER * ELEMENT
    assert by_category.get("unknown", (0, 0))[0] < 0.05 * BUFFER * ELEMENT


def test_generators_and_caches_are_stages(asked):
    _, host = asked("generator", "host")
    stages = {stage["op"]: stage for stage in host["stages"]}
    assert stages["from_generator"]["each"] == 4096 and stages["padded_batch"]["line"] == line_of("generator", "data.padded_batch")
    assert stages["cache"]["each"] == 4096 and stages["cache"]["most"] is None, "how many a generator yields is unknown"


def test_arrays_that_stay_have_their_lines(asked):
    said, summary = asked("arrays", "summary")
    found = [finding for finding in summary["findings"]["findings"] if finding["id"] == "array-on-device"]
    # As many bytes as TensorFlow's counter gained with each: none where it shares the array's memory.
    assert {finding["where"]: finding["at_stake"] for finding in found} == {
        f"line:{line_of('arrays', f'{name} = ')}": said[name] for name in ("table", "rows") if said[name]}
    assert said["table"] >= 8 * MIB
    assert all("batch at a time" in finding["remedy"] for finding in found)     # slices of a dataset would be a copy in host memory as well


def test_samples_and_time_of_a_loop_of_ones_own(asked):
    said, steps = asked("own_loop", "steps")
    steps = steps["steps"]
    assert [step["samples"] for step in steps["steps"]] == said["samples"]
    # The stopwatch of the program, around the same calls.
    assert 0.8 < steps["interval_us"] / 1e6 / said["interval"] < 1.25
    assert 0.8 < steps["samples_per_s"] * said["interval"] / 32 < 1.25
    assert steps["reason"] == "4 steps (8, 16, 24, ...) have a smaller batch: 26 instead of 32."


def test_samples_of_fit(asked):
    said, steps = asked("fit", "steps")
    steps = steps["steps"]
    train = [step for step in steps["steps"] if step["kind"] == "train"]
    assert [step["samples"] for step in train] == said["samples"] == 3 * (7 * [32] + [26])
    assert steps["reason"] == "The last step of each epoch has a smaller batch: 26 instead of 32.", steps["sentence"]
    assert steps["samples_per_s"] > 0 and "samples per second" in steps["pace"]


def test_a_longer_sequence_is_the_reason(asked):
    _, steps = asked("long_sequence", "steps")
    steps = steps["steps"]
    assert steps["reason"] == "Step 14 has longer inputs: 200 instead of 100 along axis 1." and steps["reason"] in steps["sentence"]
    assert steps["steps"][13]["outlier"] and "longer inputs" in steps["steps"][13]["why"]


@pytest.mark.parametrize("program", ["float64_array", "float64_cast"])
def test_float64_has_the_line_where_it_enters(asked, program):
    _, summary = asked(program, "summary")
    assert f"it enters at {line_of(program, {'float64_array': 'x = tf.constant', 'float64_cast': 'wide = tf.cast'}[program])}." in \
        findings(summary)["float64"]["title"]


def test_a_kept_tape_costs_what_tensorflow_gets_back(asked):
    said, summary = asked("tape", "summary")
    finding = findings(summary)["persistent-tape"]
    # Single numbers that die with the tape are counted too.
    assert 0 <= finding["at_stake"] - max(said["kept"]) <= 512 and min(said["kept"]) > 4 * MIB
    assert line_of("tape", "with tf.GradientTape(persistent=True)") in finding["title"]


def test_building_models_in_a_loop_is_not_training(asked):
    said, leaks, steps = asked("layers_in_a_loop", "leaks", "steps")
    assert not [step for step in steps["steps"]["steps"] if step["kind"] == "train"], steps["steps"]["sentence"]
    assert leaks["verdict"] != "growing", leaks["sentence"]


def test_python_and_numpy_by_line(asked):
    said, host = asked("host", "host", options=["--host", "python"])
    lines = {(line["kind"], line["line"]): line["bytes"] for line in host["lines"]}
    assert said["array"] <= lines["numpy", line_of("host", "array = ")] < said["array"] + 4096
    assert 0.9 * said["words"] < lines["python", line_of("host", "words = ")] < 1.1 * said["words"]
    owners = {owner["name"]: owner["value"] for owner in host["owners"]}
    assert owners["in NumPy arrays"] >= said["array"] and host["rest"] == host["resident"] - sum(owners.values())
