"""Recording that begins in a running interpreter."""
import json
import os
import signal
import subprocess
from pathlib import Path

TWICE = """
import json, os, sys
import numpy as np
import keras, tensorflow as tf
import vramscope

def message(action):
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(512), keras.layers.Dense(10)])
model.compile("adam", "mse")
x, y = np.zeros((320, 64), "float32"), np.zeros((320, 10), "float32")
model.fit(x, y, verbose=0)
kept = tf.random.normal([300, 1000])
info = lambda: tf.config.experimental.get_memory_info("CPU:0")
answer = {"stop_first": message(vramscope.stop)}

traces, seen = [], []
for run in range(2):
    before = info()["current"]
    with vramscope.record("out") as recording:
        if run == 0:
            answer["twice"] = message(lambda: vramscope.start("other"))
        model.fit(x, y, verbose=0, epochs=2)
        ours = vramscope.memory_info("CPU:0")
        seen.append([ours.source, ours.current, info()["current"], before])
    traces.append(str(recording.path))
answer.update(traces=traces, seen=seen, after=vramscope.memory_info("CPU:0").source, parameters=model.count_params() * 4,
              bad=message(lambda: vramscope.start("out", stacks="all")), other=os.path.exists("other"))
print(json.dumps(answer))
"""


def dump(vramscope, trace):
    text = subprocess.run([str(vramscope), "dump", "--jsonl", str(trace)], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def test_start_and_stop_twice(run_python, each_python, vramscope):
    answer = run_python(each_python, TWICE).answer
    assert answer["stop_first"] == "RuntimeError: not recording; call start() first"
    assert answer["twice"].startswith("RuntimeError: already recording") and not answer["other"]
    assert "stacks='all'" in answer["bad"]
    assert answer["after"] == "tensorflow" and len(set(answer["traces"])) == 2
    for (source, ours, theirs, before), trace in zip(answer["seen"], answer["traces"]):
        assert source == "recorder" and ours == theirs
        events = dump(vramscope, trace)
        kinds = {event["event"] for event in events}
        assert {"alloc", "free", "mark", "tag", "setting", "totals"} <= kinds
        steps = [e for e in events if e["event"] == "mark" and e["kind"] == "step" and e["edge"] == "begin"]
        assert len(steps) == 20
        tagged = {e["name"]: e for e in events if e["event"] == "tag" and e["category"] == "parameter"}
        assert sum(e["bytes"] for e in tagged.values()) == answer["parameters"]       # also of a model made before
        totals = [e for e in events if e["event"] == "totals"][-1]
        assert totals["before"] == before


AGAIN = """
import json
import numpy as np
import keras, vramscope

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(16), keras.layers.Dense(10)])
model.compile("adam", "mse", run_eagerly=True)
x, y = np.zeros((32, 64), "float32"), np.zeros((32, 10), "float32")
traces = []
for _ in range(3):
    with vramscope.record("out") as recording:
        for _ in range(4):
            model.train_on_batch(x, y)
    traces.append(str(recording.path))
print(json.dumps(traces))
"""


def test_each_recording_of_a_process_sees_each_step_once(run_python, python, vramscope):
    traces = run_python(python, AGAIN).answer
    assert len(set(traces)) == 3
    for trace in traces:
        events = dump(vramscope, trace)
        marks = [(e["kind"], e["edge"], e["name"]) for e in events if e["event"] == "mark" and e["name"] in ("optimizer", "backward")]
        assert marks == 4 * [("phase", "begin", "backward"), ("phase", "end", "backward"), ("phase", "begin", "optimizer"),
                             ("phase", "end", "optimizer"), ("step", "instant", "optimizer")]
        assert {e["value"] for e in events if e["event"] == "setting" and e["key"] == "python_side.tensorflow"} == {"on"}


TRACED_BEFORE = """
import json
import numpy as np
import keras, tensorflow as tf, vramscope

STEPS = 5
x, y = np.zeros((8, 64), "float32"), np.zeros((8, 10), "float32")

def network(**how):
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(128), keras.layers.Dense(10)])
    model.compile("adam", "mse", **how)
    return model

def single_batches(**how):
    model = network(**how)
    return lambda: model.train_on_batch(x, y)

def whole_fit(**how):
    model = network(**how)
    return lambda: model.fit(x, y, batch_size=8, verbose=0)

def gradient(tape, model):
    with tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    return tape.gradient(loss, model.trainable_variables)

def own_function(**how):
    model, optimizer = network(), keras.optimizers.SGD(0.1, momentum=0.9)
    train = tf.function(lambda: optimizer.apply_gradients(zip(gradient(tf.GradientTape(), model), model.trainable_variables)), **how)
    evaluate = tf.function(lambda: tf.reduce_mean((model(x) - y) ** 2) + tf.cast(optimizer.iterations, tf.float32), **how)
    return lambda: (train(), evaluate())

ways = [(make.__name__, how, make(**how)) for make in (single_batches, whole_fit, own_function) for how in ({"jit_compile": True}, {"jit_compile": False})]
for _, _, train in ways:
    for _ in range(2):
        train()

answer = []
for name, how, train in ways:
    with vramscope.record("out") as recording:
        for _ in range(STEPS):
            train()
    answer.append([name, how, str(recording.path)])
print(json.dumps([STEPS, answer]))
"""


def test_steps_of_functions_that_were_traced_before(run_python, each_python, vramscope):
    """What they do is read from their graphs: XLA's ops have no names by which steps could be found."""
    steps, recordings = run_python(each_python, TRACED_BEFORE).answer
    for name, how, trace in recordings:
        answer = json.loads(subprocess.check_output([str(vramscope), "steps", "--json", trace]))
        found = [step for step in answer["steps"]["steps"] if step["kind"] == "train"]
        assert len(found) == steps, (name, how, len(found))
        assert all(step["allocs"] > 0 for step in found), (name, how, "an empty step")


def test_refused_under_run(run_python, python):
    source = """
import json, tensorflow, vramscope
try:
    vramscope.start("out")
except RuntimeError as error:
    print(json.dumps(str(error)))
"""
    assert "started by 'vramscope run'" in run_python(python, source, record=True).answer


def test_a_forked_child_does_not_hold_up_the_recording(run_python, python, vramscope):
    """One child that lives on, one that leaves by the interpreter's exit: neither waits, nor lets stop() wait. If one did, it would wait
    here until the test is ended."""
    source = """
import json, os, signal, sys
import tensorflow as tf
import vramscope, vramscope.attach

vramscope.attach._GRACE_S = 1_000_000
vramscope.start("out")
kept = tf.ones([1000, 1000])
sleeper = os.fork()
if sleeper == 0:
    signal.pause()
leaver = os.fork()
if leaver == 0:
    try:
        vramscope.stop()
    except RuntimeError as error:
        sys.exit(7 if "not recording" in str(error) else 1)
code = os.waitstatus_to_exitcode(os.waitpid(leaver, 0)[1])
trace = vramscope.stop()
os.kill(sleeper, signal.SIGKILL)
os.waitpid(sleeper, 0)
print(json.dumps([code, str(trace), os.getpid()]))
"""
    code, trace, pid = run_python(python, source).answer
    assert code == 7 and f"-{pid}-" in trace
    assert any(e["event"] == "alloc" and e["requested"] == 4_000_000 for e in dump(vramscope, trace))


def test_nothing_recorded_on_a_host_without_a_pool_is_explained(run_python, python):
    source = """
import json, tensorflow as tf, vramscope
try:
    with vramscope.record("out"):
        tf.ones([1000])
except RuntimeError as error:
    print(json.dumps(str(error)))
"""
    assert "TF_CPU_ALLOCATOR_USE_BFC=1" in run_python(python, source, env={"TF_CPU_ALLOCATOR_USE_BFC": ""}).answer


def test_a_missing_program_is_said_and_nothing_is_half_started(run_python, python, tmp_path, inject):
    (tmp_path / "empty").mkdir()
    os.symlink(inject, tmp_path / "empty" / "libvramscope_inject.so")
    source = """
import json, os
import vramscope, vramscope._files as files
files._PACKAGE = files.Path("/nowhere/a/b")
messages = []
for _ in range(2):
    try:
        vramscope.start("out")
    except OSError as error:
        messages.append(str(error))
print(json.dumps([messages, os.path.exists("out")]))
"""
    messages, made = run_python(python, source, env={"VRAMSCOPE_BUILD": str(tmp_path / "empty"), "PATH": "/usr/bin:/bin"}).answer
    assert len(messages) == 2 and all("the vramscope program was not found" in m for m in messages) and not made


def test_a_killed_process_leaves_its_trace(build, python, vramscope, tmp_path, wait_until):
    """SIGKILL to the whole process group: the collector is not in it."""
    script = tmp_path / "script.py"
    script.write_text("import os, signal, tensorflow as tf, vramscope\n"
                      "vramscope.start('out')\n"
                      "kept = [tf.random.normal([64, 1024]) for _ in range(10)]\n"
                      "vramscope.mark('last words')\n"
                      "os.killpg(0, signal.SIGKILL)\n")
    environment = {**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "VRAMSCOPE_BUILD": str(build),
                   "PYTHONPATH": str(script.parents[0]) + os.pathsep + str(Path(__file__).resolve().parents[1]), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([str(python), str(script)], cwd=tmp_path, env=environment, start_new_session=True, capture_output=True, timeout=600)
    assert done.returncode == -signal.SIGKILL
    wait_until(lambda: any(json.loads(path.read_text()).get("ended_us") for path in (tmp_path / "out").glob("*.manifest.json")),
               "the collector ends the recording")
    trace, = (tmp_path / "out").glob("*.vram")
    events = dump(vramscope, trace)
    assert any(e["event"] == "mark" and e["name"] == "last words" for e in events)
    assert sum(e["event"] == "alloc" and e["requested"] == 64 * 1024 * 4 for e in events) >= 10
