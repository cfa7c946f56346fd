"""What an unmodified program tells through the start-up hook, compared with what Keras and TensorFlow say themselves."""
import ctypes

import pytest

FIT = """
import json
import numpy as np
import keras, tensorflow as tf

keras.layers.Dense(3, name="warmup_so_that_scopes_and_names_differ")(np.zeros((1, 3), "float32"))
model = keras.Sequential([
    keras.Input((16, 16, 3)),
    keras.layers.Conv2D(8, 3, activation="relu"),       # line 9
    keras.layers.BatchNormalization(),
    keras.layers.Flatten(),
    keras.layers.Dense(32, activation="relu"),          # line 12
    keras.layers.Dense(10),
])
model.compile(keras.optimizers.Adam(), "mse")
x, y = np.zeros((64, 16, 16, 3), "float32"), np.zeros((64, 10), "float32")
model.fit(x, y, batch_size=16, epochs=2, verbose=0, validation_data=(x, y))
model.predict(x, verbose=0)
model.save_weights("weights.weights.h5")
print(json.dumps({
    "layers": [layer.name for layer in model.layers],
    "parameters": sum(int(np.prod(v.shape)) * 4 for v in model.variables if not v.path.startswith("seed")),
    "slots": sum(int(np.prod(v.shape)) * np.dtype(v.dtype).itemsize for v in model.optimizer.variables),
    "trainable": {f"{layer.name}/{v.name}": int(np.prod(v.shape)) for layer in model.layers for v in layer.trainable_variables},
}))
"""


def spans(marks):
    """(name, number) of matched begin and end pairs; fails on anything unbalanced."""
    open_marks, out = [], []
    for mark in marks:
        if mark.edge == "begin":
            open_marks.append(mark)
        elif mark.edge == "end":
            begun = open_marks.pop()
            assert (begun.name, begun.number) == (mark.name, mark.number)
            out.append((mark.name, mark.number))
    assert not open_marks
    return out


def test_keras_fit(run_python, each_python):
    finished = run_python(each_python, FIT, record=True)
    recorded, model = finished.recorded, finished.answer
    assert "Traceback" not in finished.stderr

    assert spans(recorded.marks_of("epoch")) == [("epoch", 1), ("epoch", 2)]
    assert spans(recorded.marks_of("step")) == [("train", n) for n in range(1, 9)]
    batches = spans(recorded.marks_of("batch"))
    assert [b for b in batches if b[0] == "train"] == [("train", n) for _ in range(2) for n in range(1, 5)]
    assert sum(b[0] == "evaluate" for b in batches) == 8 and sum(b[0] == "predict" for b in batches) > 0
    phases = [name for name, _ in spans(recorded.marks_of("phase"))]
    assert phases.count("train") == 1 and phases.count("evaluate") == 2 and phases.count("predict") == 1 and phases.count("save") == 1
    assert phases.count("trace") >= 3

    # Parameters and slots: the last word on each variable sums to the model's own sums.
    by_name = {tag.name: tag for tag in recorded.tags}
    of_model = [t for t in by_name.values() if t.category in ("parameter", "buffer") and t.layer in model["layers"] and "seed" not in t.name]
    assert sum(t.bytes for t in of_model) == model["parameters"]
    assert {t.name for t in of_model if t.category == "parameter"} == set(model["trainable"])
    assert sum(t.bytes for t in by_name.values() if t.category == "optimizer_state") == model["slots"]
    # Each tagged address is a live block at that moment that holds the variable.
    assert_tags_hit_live_blocks(recorded)

    # Layers and lines, forward and backward.
    ops = recorded.op_sources
    forward = [s for op, s in ops.items() if s.layer and not op.startswith("gradient_tape")]
    assert {s.layer for s in forward} >= set(model["layers"])
    conv, dense = model["layers"][0], model["layers"][3]
    assert {s.line for op, s in ops.items() if s.layer == conv and "adam" not in op} == {9}
    assert {s.line for op, s in ops.items() if s.layer == dense and "adam" not in op} == {12}
    backward = {s.layer for op, s in ops.items() if op.startswith("gradient_tape/sequential")}
    assert backward >= {conv, dense, model["layers"][4]}
    # Which op makes which gradient: each trainable variable has one.
    gradients = {op["variable"] for op in recorded.reports_of("variable_op") if op["role"] == 1}
    assert gradients == set(model["trainable"])
    assert recorded.settings["tensorflow.version"] and recorded.settings["keras.version"].startswith("3.")


def assert_tags_hit_live_blocks(recorded):
    live, missed = {}, []
    for record in recorded:
        kind = type(record).__name__
        if kind == "Alloc":
            live[record.address] = record
        elif kind == "Free":
            live.pop(record.address, None)
        # TensorFlow keeps tiny constants outside of its pool, and takes an aligned array of NumPy's as it is.
        elif kind == "Tag" and record.bytes >= 256 and record.category != "input":
            block = live.get(record.address)
            if block is None or block.requested != record.bytes:
                missed.append(record)
    assert recorded.tags and not missed, missed


SUBCLASSED = """
import json
import numpy as np
import keras, tensorflow as tf

class Block(keras.layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.first = keras.layers.Dense(width)
        self.second = keras.layers.Dense(width)

    def call(self, x):
        h = tf.nn.relu(self.first(x))                   # line 13
        return self.second(h) * 2.0                     # line 14

class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.block = Block(32)
        self.head = keras.layers.Dense(4)

    def call(self, x):
        return self.head(self.block(x))                 # line 23

net, optimizer = Net(), keras.optimizers.SGD(momentum=0.9)
x, y = tf.random.normal([8, 16]), tf.random.normal([8, 4])

def train(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(x) - y) ** 2)        # line 30
    gradients = tape.gradient(loss, net.trainable_variables)    # line 31
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    return loss

EAGER
for _ in range(5):
    train(x, y)
print(json.dumps({"block": net.block.name, "head": net.head.name, "first": net.block.first.name, "second": net.block.second.name}))
"""


def test_custom_loop_in_a_function(run_python, each_python):
    finished = run_python(each_python, SUBCLASSED.replace("EAGER", "train = tf.function(train)"), record=True)
    recorded, names = finished.recorded, finished.answer
    assert "Traceback" not in finished.stderr
    assert len(spans(recorded.marks_of("step"))) == 4                   # the first call is known to train only when it ended:
    assert [m.detail for m in recorded.marks_of("function") if m.name == "train" and m.edge == "end"] == ["step@1"]
    first, second = f"{names['block']}/{names['first']}", f"{names['block']}/{names['second']}"
    lines = {(s.layer, s.line) for op, s in recorded.op_sources.items() if "gradient_tape" not in op and s.layer and s.line < 31}
    assert lines == {(first, 13), (second, 14), (names["block"], 13), (names["block"], 14), (names["head"], 23),
                     ("(loss and metrics)", 30)}
    backward = {(s.layer, s.line) for op, s in recorded.op_sources.items() if op.startswith("gradient_tape/net")}
    assert {(first, 31), (second, 31), (names["head"], 31)} <= backward
    slots = {t.layer for t in recorded.tags if t.category == "optimizer_state"}
    assert {first, second, names["head"]} <= slots
    assert_tags_hit_live_blocks(recorded)


def test_custom_loop_in_eager_mode(run_python, python):
    finished = run_python(python, SUBCLASSED.replace("EAGER", ""), record=True)
    recorded, names = finished.recorded, finished.answer
    assert "Traceback" not in finished.stderr
    assert [m.number for m in recorded.marks_of("step")] == [1, 2, 3, 4, 5]
    phases = [name for name, _ in spans(recorded.marks_of("phase"))]
    assert phases.count("backward") == phases.count("optimizer") == 5
    first = f"{names['block']}/{names['first']}"
    # Forward, backward and update of the layer, in each step.
    assert sum(m.edge == "begin" and m.name == first for m in recorded.marks_of("layer")) >= 15
    spans([m for m in recorded.marks_of("layer")])
    tapes = recorded.marks_of("tape")
    assert [m.edge for m in tapes].count("begin") == 5 and all(m.detail.endswith("script.py:29") for m in tapes if m.edge == "begin")


def test_a_batch_whose_callback_raises_is_reported(monkeypatch, inject):
    """And with steps_per_execution the last execution of an epoch tells only the batches that there are."""
    from vramscope import _recorder
    from vramscope._hooks import emit, keras, training

    monkeypatch.setattr(_recorder, "_loaded", _recorder.Recorder(ctypes.PyDLL(str(inject))))

    class Callbacks:
        params = {"steps": 11}

        def _do(self, batch=0, logs=None):
            if batch == 15:
                raise ValueError("a callback's own")

        on_train_begin = on_train_end = on_epoch_begin = on_epoch_end = on_train_batch_begin = on_train_batch_end = _do
        on_test_begin = on_test_end = on_test_batch_begin = on_test_batch_end = _do
        on_predict_begin = on_predict_end = on_predict_batch_begin = on_predict_batch_end = _do

    marks = []
    monkeypatch.setattr(emit, "mark", lambda kind, edge, name, number=-1, detail=None: marks.append((kind, edge, number)))
    monkeypatch.setattr(training, "step_done", lambda: None)
    keras._watch_training(Callbacks)
    callbacks = Callbacks()
    callbacks.on_train_batch_begin(8)
    with pytest.raises(ValueError):
        callbacks.on_train_batch_end(15)
    assert marks[0] == (keras.BATCH, keras.BEGIN, 9) and marks[-1] == (keras.BATCH, keras.END, 11)
    assert [edge for kind, edge, _ in marks if kind == keras.STEP] == [keras.BEGIN, keras.END]


def test_hooks_that_are_installed_twice_report_each_update_once(monkeypatch, inject):
    """As by a second recording in the same process."""
    from vramscope import _recorder
    from vramscope._hooks import emit, keras_optimizers, training

    monkeypatch.setattr(_recorder, "_loaded", _recorder.Recorder(ctypes.PyDLL(str(inject))))

    class BaseOptimizer:
        def __init__(self):
            self.updates = 0

        def apply(self, gradients, variables=None):
            self.updates += 1

        def apply_gradients(self, pairs):
            self.apply(pairs)

    class Optimizers:
        pass

    Optimizers.BaseOptimizer = BaseOptimizer
    marks = []
    monkeypatch.setattr(emit, "mark", lambda kind, edge, name, number=-1, detail=None: marks.append((kind, edge, detail)))
    monkeypatch.setattr(training, "step_done", lambda: None)
    keras_optimizers.install(Optimizers)
    keras_optimizers.install(Optimizers)
    optimizers = [BaseOptimizer() for _ in range(2)]
    for optimizer in optimizers:
        optimizer.apply_gradients([])
    del optimizers[0], optimizer
    third = BaseOptimizer()
    third.apply_gradients([])
    third.apply([])
    assert third.updates == 2
    assert [edge for kind, edge, _ in marks if kind == keras_optimizers.PHASE] == 4 * [keras_optimizers.BEGIN, keras_optimizers.END]
    # A number is never that of another optimizer that is still there.
    numbers = [detail for kind, _, detail in marks if kind == training.STEP]
    assert len(numbers) == 4 and len(set(numbers)) == 3 and numbers[2] == numbers[3]


FAILED = """
import keras, numpy as np, tensorflow as tf

class Boom(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if batch == 2:
            raise RuntimeError("boom")
    on_test_batch_begin = on_train_batch_begin

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
model.compile("sgd", "mse")
x, y = tf.ones([32, 8]), tf.ones([32, 4])
for loop in (model.fit, model.evaluate):
    try:
        loop(x, y, batch_size=8, verbose=0, callbacks=[Boom()])
        raise SystemExit("it did not fail")
    except RuntimeError as error:
        assert str(error) == "boom"
optimizer = keras.optimizers.SGD()

@tf.function
def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

for _ in range(5):
    train()
"""


def test_after_a_fit_that_failed_a_custom_loop_is_recorded(run_python, each_python):
    recorded = run_python(each_python, FAILED, record=True).recorded
    assert [m.edge for m in recorded.marks_of("step") if m.name == "train"].count("begin") == 3 + 4     # of fit; the loop's calls but the first
    for kind in ("phase", "epoch", "batch", "step"):
        spans(recorded.marks_of(kind))                                                                  # each begin has its end
    phases = [(m.name, m.edge) for m in recorded.marks_of("phase") if m.name != "trace"]
    assert phases == [("train", "begin"), ("train", "end"), ("evaluate", "begin"), ("evaluate", "end")]
    assert [m.detail for m in recorded.marks_of("function") if m.name == "train" and m.edge == "end"] == ["step@2"]


FAULTS = """
import json
import numpy as np
import tensorflow as tf

table = np.ones((1024, 1024), "float32")

@tf.function
def lookup(i):
    return tf.gather(table, i)                          # line 10

@tf.function
def retraced(x, n):                                     # line 12: first line of the function, its decorator
    return x * n

lookup(tf.constant([1]))
for n in range(12):
    retraced(tf.ones([4]), n)

v = tf.Variable(1.0)
tape = None
for _ in range(5):
    with tf.GradientTape(persistent=True) as tape:      # line 23
        loss = v * v
    tape.gradient(loss, v)
"""


def test_causes_that_allocations_cannot_tell(run_python, each_python):
    recorded = run_python(each_python, FAULTS, record=True).recorded
    constant, = recorded.reports_of("baked_constant")
    assert constant["bytes"] == 4 * 1024 * 1024 and constant["line"] == 10 and constant["dtype"] == "float32"
    retraces = recorded.reports_of("retrace")
    assert [retrace["traces"] for retrace in retraces] == [3, 5, 10]
    assert retraces[-1]["line"] == 12 and "Literal" in retraces[-1]["reason"]
    assert len(recorded.marks_of("retrace")) == 11
    tape, = recorded.reports_of("persistent_tape")
    assert tape["line"] == 23


ONLY_PREDICT = """
import json
import numpy as np
import keras

model = keras.Sequential([keras.layers.Dense(300), keras.layers.Dense(7)])       # built by its first batch
model.predict(np.zeros((64, 50), "float32"), verbose=0)
print(json.dumps({"parameters": model.count_params() * 4}))
"""


def test_parameters_are_told_without_a_training(run_python, each_python):
    finished = run_python(each_python, ONLY_PREDICT, record=True)
    newest = {tag.name: tag for tag in finished.recorded.tags}
    assert sum(tag.bytes for tag in newest.values() if tag.category == "parameter") == finished.answer["parameters"]


GRADIENT_OF_A_LOOP = """
import json
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_v2_behavior()
weights = v1.get_variable("weights", [600, 600])
table = tf.constant(np.random.rand(600, 600).astype("float32"))       # line 9
_, last = v1.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x @ weights), [0, table])
v1.gradients(tf.reduce_sum(last), weights)      # its sum starts from zeros as large as the weights: not the user's array
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
print(json.dumps({}))
"""


def test_constants_of_a_gradient_are_not_the_users(run_python, each_python):
    recorded = run_python(each_python, GRADIENT_OF_A_LOOP, record=True).recorded
    constants = recorded.reports_of("baked_constant")
    assert [(constant["line"], constant["bytes"]) for constant in constants] == [(9, 600 * 600 * 4)]


REPORTS = """
import json
from vramscope import _recorder
from vramscope._hooks import emit
from vramscope._schema import REPORTS

recorder = _recorder.active()
emit.report("retrace", function="überholt", reason="n: 1 -> 2", file="/data/Größe.py", line=17, traces=2 ** 63)
kind, texts, numbers = REPORTS["retrace"]
for wrong in ([b"f"] * (len(texts) - 1), [b"f"] * (len(texts) + 1), []):
    recorder.report_event(kind, wrong, [1] * len(numbers))
recorder.report_event(kind, [b"f"] * len(texts), [1])
for wrong in (0, 3, -1, 255, 65536 + kind, -(2 ** 31)):        # no such event, or one that is not reported
    recorder.report_event(wrong, [], [])
    recorder.report_event(wrong, [b"f"] * len(texts), [1] * len(numbers))
recorder.report(kind, None, len(texts), None, len(numbers))
fields = [*["f"] * len(texts), *[1] * len(numbers)]
direct = [recorder.report_directly(*wrong) for wrong in (
    (), (kind,), (kind, *fields[1:]), (kind, *fields, 1), (kind, *fields[:-1], "1"), (kind, 3, *fields[1:]), (65536 + kind, *fields), (0,), ("f", *fields),
    (kind, "\\ud800", *fields[1:]))]
direct += [recorder.mark_directly(*wrong) for wrong in ((), (1, 1, "n", -1), (1, 1, b"n", -1, None), (1, 1, None, -1, None), (1, 1, "n", 1.5, None))]
direct += [recorder.op_source_directly("op", None, 1, "f", None), recorder.op_source_directly("op", "file", "1", "f", None)]
print(json.dumps(direct))
emit.report("retrace", function="half \\ud800", reason="r", file="f", line=1, traces=1)         # not by that way
"""


def test_a_report_that_is_not_as_described_is_left_out(run_python, python):
    ran = run_python(python, REPORTS, record=True)
    assert ran.answer == [False] * 17
    assert [(report.event, report.fields) for report in ran.recorded.reports] == [
        ("retrace", {"function": "überholt", "reason": "n: 1 -> 2", "file": "/data/Größe.py", "line": 17, "traces": 2 ** 63}),
        ("retrace", {"function": "half ?", "reason": "r", "file": "f", "line": 1, "traces": 1})]
