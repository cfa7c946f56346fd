"""memory_info and the ops against TensorFlow's own numbers, to the byte."""
import json
import subprocess

import pytest

MOST_BYTECODES_OF_A_READ = 90

AT_EVERY_BATCH = """
import json, sys
import numpy as np
import keras, tensorflow as tf
import vramscope, vramscope.tf
from quiet_data import quiet

differences, batches, sources = [], 0, set()

class Compare(keras.callbacks.Callback):
    def compare(self):
        global batches
        batches += 1
        theirs = tf.config.experimental.get_memory_info("CPU:0")
        ours = vramscope.memory_info("CPU:0")
        again = vramscope.tf.get_memory_info("CPU:0")
        sources.add(ours.source)
        for name in ("current", "peak"):
            if not theirs[name] == getattr(ours, name) == again[name]:
                differences.append((batches, name, theirs[name], getattr(ours, name), again[name]))
        op = vramscope.tf.bytes_in_use()
        peak = vramscope.tf.max_bytes_in_use()
        theirs = tf.config.experimental.get_memory_info("CPU:0")      # while both outputs live
        if int(op) + 256 != theirs["current"] or int(peak) != theirs["peak"]:
            differences.append((batches, "op", int(op), int(peak), theirs))
    def on_train_batch_begin(self, batch, logs=None):
        self.compare()
    def on_train_batch_end(self, batch, logs=None):
        self.compare()
        if batch == 20:
            tf.config.experimental.reset_memory_stats("CPU:0")
        if batch == 30:
            vramscope.reset_peak("CPU:0")
        if batch == 40:
            vramscope.tf.reset_memory_stats("CPU:0")

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(10)])
model.compile("adam", "mse")
data = quiet(np.zeros((16 * 60, 64), "float32"), np.zeros((16 * 60, 10), "float32"), 16)
model.fit(data, epochs=1, verbose=0, callbacks=[Compare()])
print(json.dumps({"batches": batches, "differences": differences[:5], "sources": sorted(sources)}))
"""


def test_numbers_equal_tensorflows_at_every_batch(run_python, each_python, quiet_data):
    answer = run_python(each_python, AT_EVERY_BATCH).answer
    assert answer == {"batches": 120, "differences": [], "sources": ["tensorflow"]}


def test_numbers_equal_tensorflows_while_recorded(run_python, python, quiet_data):
    answer = run_python(python, AT_EVERY_BATCH, record=True).answer
    assert answer == {"batches": 120, "differences": [], "sources": ["recorder"]}


HOLES = """
import json, random
import tensorflow as tf
import vramscope
random.seed(3)
kept, looks = [], []
for place in range(60):
    kept.append(tf.zeros([random.randrange(1, 3000) * 64]))
    if place % 3 == 2:
        kept.pop(random.randrange(len(kept)))
    info = vramscope.memory_info("CPU:0")
    vramscope.mark("look", place)
    looks.append([info.source, info.current, info.pool, info.largest_free_block])
print(json.dumps(looks))
"""


def largest_hole(regions, live):
    holes = [0]
    for begin, size in regions.items():
        at = begin
        for block in sorted(address for address in live if begin <= address < begin + size):
            holes.append(block - at)
            at = block + live[block]
        holes.append(begin + size - at)
    return max(holes)


def test_largest_free_block_is_the_largest_hole_between_the_recorded_blocks(record_python, each_python, vramscope):
    folder, output = record_python(each_python, HOLES)
    looks = json.loads(output.strip().splitlines()[-1])
    dump = subprocess.run([str(vramscope), "dump", "--jsonl", str(folder)], capture_output=True, text=True, check=True).stdout
    regions, live, seen = {}, {}, []
    for event in map(json.loads, dump.splitlines()):
        if event["event"] == "region":
            regions[event["address"]] = event["bytes"]
        elif event["event"] == "alloc" and event["level"] == "tensor":
            live[event["address"]] = event["granted"]
        elif event["event"] == "free" and event["level"] == "tensor":
            del live[event["address"]]
        elif event["event"] == "mark" and event["name"] == "look":
            seen.append(["recorder", sum(live.values()), sum(regions.values()), largest_hole(regions, live)])
    assert seen == looks and len(seen) == 60 and len({look[3] for look in looks}) > 10


THREADS = """
import json, threading
import tensorflow as tf
import vramscope

stop, wrong = threading.Event(), []

def look(name):
    while not stop.is_set():
        info = vramscope.memory_info(name)
        if not 0 <= info.largest_free_block <= info.pool or not info.current <= info.peak or info.pool - info.current != info.cached:
            wrong.append(info)

threads = [threading.Thread(target=look, args=(name,)) for name in ("CPU:0", "CPU:0", "/device:CPU:0")]
for thread in threads:
    thread.start()
for _ in range(300):
    tf.linalg.matmul(tf.zeros([200, 300]), tf.zeros([300, 100]))
stop.set()
for thread in threads:
    thread.join()
theirs, ours = tf.config.experimental.get_memory_info("CPU:0"), vramscope.memory_info("CPU:0")
print(json.dumps([wrong[:3], theirs == {"current": ours.current, "peak": ours.peak}]))
"""


@pytest.mark.parametrize("record", [False, True], ids=["plain", "recorded"])
def test_threads_may_read_at_any_time(run_python, python, record):
    assert run_python(python, THREADS, record=record).answer == [[], True]


PLACES = """
import json
import tensorflow as tf
import vramscope, vramscope.tf as vtf

x = tf.random.normal([500, 500])

@tf.function
def inside(x):
    y = tf.matmul(x, x)
    with tf.control_dependencies([y]):
        now = vtf.bytes_in_use()
    with tf.control_dependencies([now]):                              # keeps `y` alive until then
        z = tf.reduce_sum(y)
    with tf.control_dependencies([z]):
        later, peak, limit = vtf.bytes_in_use(), vtf.max_bytes_in_use(), vtf.bytes_limit()
    return z, now, later, peak, limit

_, now, later, peak, limit = [int(v) for v in inside(x)]
info = tf.config.experimental.get_memory_info("CPU:0")
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    a = tf.random.uniform([1000, 1000])
    with tf.control_dependencies([a]):
        graph_value = vtf.bytes_in_use()
    with tf.control_dependencies([graph_value]):                      # keeps `a` alive until then
        total = tf.reduce_sum(a)
    v1 = session.run([graph_value, total])[0]
print(json.dumps({"now": now, "later": later, "peak": peak, "limit": limit, "info": info, "v1": int(v1),
                  "scalar": inside.get_concrete_function(x).structured_outputs[1].shape.rank,
                  "get": vtf.get_memory_info("CPU:0")["limit"]}))
"""


def test_ops_work_eagerly_in_functions_and_in_sessions(run_python, each_python):
    answer = run_python(each_python, PLACES).answer
    matrix = 500 * 500 * 4
    assert answer["now"] - answer["later"] in range(matrix - 1024, matrix + 1024)   # the product was live, then gone
    assert answer["peak"] >= answer["now"] and answer["peak"] == answer["info"]["peak"]
    assert answer["limit"] == answer["get"] == 64 << 30                             # TensorFlow's default for the CPU
    assert answer["v1"] >= answer["later"] + 1000 * 1000 * 4                        # the session's own tensor is in it
    assert answer["scalar"] == 0


ERRORS = """
import json, os, sys
import tensorflow as tf
import vramscope, vramscope.tf as vtf

def message(action):
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"

@tf.function(jit_compile=True)
def compiled(x):
    return x + tf.cast(vtf.bytes_in_use(), tf.float32)

print(json.dumps({
    "unknown": message(lambda: vramscope.memory_info("toaster")),
    "no_name": [message(lambda: vramscope.memory_info(device)) for device in (None, 3, ["GPU:0"], {})],
    "no_gpu": message(lambda: vramscope.memory_info("GPU:0")),
    "tf_no_gpu": message(lambda: vtf.get_memory_info("GPU:0")),
    "tf_reset": message(lambda: vtf.reset_memory_stats("GPU:7")),
    "reset": message(lambda: vramscope.reset_peak("GPU:0")),
    "no_cpu": [message(lambda: vramscope.memory_info("CPU:7")), message(lambda: vramscope.reset_peak("CPU:7"))],
    "logger": [message(lambda: vtf.memory_logger(to="memory.csv", device="GPU:3")), os.path.exists("memory.csv")],
    "xla": message(lambda: compiled(tf.constant(1.0))),
    "category": message(lambda: vramscope.tag(1, "x", category="soup")),
}))
"""


@pytest.mark.parametrize("record", [False, True], ids=["plain", "recorded"])
def test_wrong_use_gets_clear_errors(run_python, python, record):
    answer = run_python(python, ERRORS, record=record).answer
    assert answer["unknown"].startswith('ValueError: unknown device "toaster"')
    assert [line.startswith('ValueError: unknown device "') for line in answer["no_name"]] == [True] * 4
    assert answer["no_gpu"] == "ValueError: No matching devices found for 'GPU:0'"
    assert "ValueError" in answer["tf_no_gpu"] and "GPU:0" in answer["tf_no_gpu"]
    assert "ValueError" in answer["tf_reset"] and "GPU:7" in answer["tf_reset"]
    assert answer["reset"].startswith("ValueError: ")
    assert answer["no_cpu"] == ["ValueError: No matching devices found for 'CPU:7'"] * 2
    assert answer["logger"] == ["ValueError: No matching devices found for 'GPU:3'", False]
    assert answer["xla"].startswith("NotImplementedError: ") and "jit_compile" in answer["xla"]
    assert "one of unknown, parameter" in answer["category"]


def test_a_missing_library_is_said(run_python, python, tmp_path):
    source = """
import json
import vramscope._files as files
files._PACKAGE = files.Path("/nowhere/a/b")
import tensorflow, vramscope.tf as vtf
try:
    vtf.bytes_in_use()
except OSError as error:
    print(json.dumps(str(error)))
"""
    answer = run_python(python, source, env={"VRAMSCOPE_BUILD": str(tmp_path / "empty")}).answer
    assert answer.startswith("libvramscope_tfops.so: not in ") and "VRAMSCOPE_BUILD" in answer


@pytest.mark.parametrize("record", [False, True], ids=["plain", "recorded"])
def test_a_read_is_one_short_function(run_python, python, record):
    """About a microsecond (bench/measure/memory_info.py measures it): every Python function and lookup on the way would be felt."""
    source = """
import collections, json, sys
import tensorflow as tf
import vramscope
kept = tf.ones([1000, 1000])
vramscope.memory_info("CPU:0")
counted = collections.Counter()
def trace(frame, event, argument):
    frame.f_trace_opcodes = True
    counted[event] += 1
    return trace
sys.settrace(trace)
vramscope.memory_info("CPU:0")
sys.settrace(None)
print(json.dumps([vramscope.memory_info("CPU:0").source, counted]))
"""
    source, counted = run_python(python, source, record=record).answer
    assert source == ("recorder" if record else "tensorflow")
    assert counted["call"] == 1 and 10 < counted["opcode"] <= MOST_BYTECODES_OF_A_READ, counted


@pytest.mark.parametrize("name,kind,index", [
    ("GPU:0", "GPU", 0), ("gpu:3", "GPU", 3), ("cuda:1", "GPU", 1), ("cuda", "GPU", 0), ("CPU", "CPU", 0),
    ("/GPU:2", "GPU", 2), ("/device:CPU:0", "CPU", 0), ("/physical_device:GPU:1", "GPU", 1), ("/job:localhost/replica:0/task:0/device:GPU:1", "GPU", 1)])
def test_device_names(name, kind, index):
    from vramscope import _memory
    assert _memory.parse_device(name) == (kind, index)
