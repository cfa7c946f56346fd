"""MemoryCallback against TensorFlow's own numbers, on the newest and the oldest TensorFlow."""

FIT = """
import json
import numpy as np
import keras, tensorflow as tf
import vramscope.keras as vk
from quiet_data import quiet

class Theirs(keras.callbacks.Callback):
    rows = []
    def read(self, *where):
        info = tf.config.experimental.get_memory_info("CPU:0")
        self.rows.append([*where, info["current"], info["peak"]])
    def on_epoch_begin(self, epoch, logs=None): self.read("train", epoch + 1, None, "begin")
    def on_epoch_end(self, epoch, logs=None): self.read("train", epoch + 1, None, "end")
    def on_train_batch_begin(self, batch, logs=None): self.read("train", self.epoch(), batch + 1, "begin")
    def on_train_batch_end(self, batch, logs=None): self.read("train", self.epoch(), batch + 1, "end")
    def epoch(self): return [r for r in self.rows if r[2] is None and r[3] == "begin"][-1][1]

def build(width):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(width, activation="relu"), keras.layers.Dense(4)])
    model.compile("adam", "mse")
    return model

x, y = np.zeros((32 * 60, 32), "float32"), np.zeros((32 * 60, 4), "float32")
ours, theirs = vk.MemoryCallback(target_batches="all"), Theirs()
build(64).fit(quiet(x, y, 32), epochs=2, verbose=0, callbacks=[ours, theirs])
same = [[r.phase, r.epoch, r.batch, r.at, r.current, r.peak] for r in ours.rows] == theirs.rows

# Large batches, a small validation: the peak of an epoch is its training's, also where a reset lies between.
resets = {}
for reset in ("epoch", "batch"):
    cb = vk.MemoryCallback(target_batches=[2], reset=reset)
    build(1024).fit(quiet(x, y, 960), epochs=2, verbose=0, validation_data=quiet(x[:4], y[:4], 2), callbacks=[cb])
    peaks = {(r.phase, r.epoch, r.batch): r.peak for r in cb.rows if r.at == "end"}
    resets[reset] = [[peaks["train", epoch, None], peaks["train", epoch, 2], peaks["evaluate", epoch, None]] for epoch in (1, 2)]

few = vk.MemoryCallback(target_batches=[1, 30], reset="batch", metric=True, log_dir="logs")
model = build(2048)
history = model.fit(quiet(x, y, 32), epochs=1, verbose=0, callbacks=[few])
model.evaluate(x, y, verbose=0, callbacks=[few])
model.predict(x, verbose=0, callbacks=[few])
comparison = vk.compare({"small": ours, "large": few})
few.plot("few.svg"); comparison.plot("bars.svg")
print(json.dumps({
    "rows": len(ours.rows), "same": same, "resets": resets,
    "few": sorted({(r.phase, r.batch) for r in few.rows if r.batch is not None}),
    "phases": sorted({r.phase for r in few.rows}),
    "metric": history.history["peak_mib"], "epoch_peak": [r.peak / 2**20 for r in few.rows if r.batch is None and r.at == "end"][0],
    "table": comparison.table(), "peaks": comparison.peaks, "columns": list(few.history), "lines": few.table().count("\\n") - 1 - len(few.rows),
}))
"""


def test_history_equals_tensorflow_at_every_batch(run_python, each_python, quiet_data, tmp_path):
    answer = run_python(each_python, FIT).answer
    assert answer["rows"] == 2 * (2 + 2 * 60) and answer["same"]
    for epochs in answer["resets"].values():
        for epoch, batch, evaluation in epochs:
            assert epoch >= batch > evaluation + 960 * 1024 * 2         # half of one activation: the evaluation has nearly none
    assert {tuple(b) for b in answer["few"]} == {(p, n) for p in ("train", "evaluate", "predict") for n in (1, 30)}
    assert answer["metric"] == [answer["epoch_peak"]]
    assert answer["peaks"]["large"]["train peak"] > answer["peaks"]["small"]["train peak"]
    assert answer["table"].splitlines()[0].split()[0] == "model" and answer["lines"] == 0
    for name in ("few.svg", "bars.svg"):
        assert "<svg" in (tmp_path / name).read_text()
    assert list((tmp_path / "logs/memory").glob("events.out.tfevents.*"))


GROUPS = """
import json
import numpy as np
import keras, tensorflow as tf
import vramscope.keras as vk

tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
x, y = np.zeros((16 * 12, 8), "float32"), np.zeros((16 * 12, 1), "float32")
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
mirrored = vk.MemoryCallback()
model.fit(x, y, batch_size=16, verbose=0, callbacks=[mirrored])

grouped = vk.MemoryCallback(devices="CPU:0", target_batches=[6])
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", steps_per_execution=4)
model.fit(x, y, batch_size=16, verbose=0, callbacks=[grouped])

theirs, seen = lambda: tf.config.experimental.get_memory_info("CPU:0"), {}
kept = tf.random.normal([1 << 20])

def train(memory):
    seen["before"] = theirs()["current"]
    new = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1000), keras.layers.Dense(1)])
    new.compile("sgd", "mse")
    new.fit(x, y, batch_size=16, verbose=0, callbacks=[memory])
    seen["above"] = theirs()["peak"] - seen["before"]

both = vk.compare({"new": train}, devices=["CPU:0", "CPU:1"]).peaks["new"]

def message(**arguments):
    try:
        vk.MemoryCallback(**arguments).set_model(model)
    except (TypeError, ValueError) as error:
        return str(error)
print(json.dumps({"devices": sorted({r.device for r in mirrored.rows}), "groups": [r.batch for r in grouped.rows if r.batch], "both": both, "seen": seen, "kept": kept.shape[0] * 4,
                  "errors": [message(reset="sometimes"), message(target_batches="most"), message(devices="GPU:5"), message(log_dir=3)]}))
"""


def test_replicas_and_groups_of_steps(run_python, python):
    answer = run_python(python, GROUPS).answer
    assert answer["devices"] == ["CPU:0", "CPU:1"]
    assert answer["groups"] == [5, 5]                   # the group of batches 5 to 8 holds batch 6
    # Both devices have one allocator: what was in use before counts once, as TensorFlow's counter has it.
    assert answer["both"]["in use before"] == answer["seen"]["before"] >= answer["kept"]
    assert answer["both"]["train peak"] == answer["seen"]["above"] > 0 and answer["both"]["at the end"] >= 0
    assert all(answer["errors"]) and "GPU:5" in answer["errors"][2] and answer["errors"][3].startswith("log_dir=3: expected")


def test_charts_without_matplotlib(monkeypatch, tmp_path):
    import xml.etree.ElementTree as xml
    from vramscope import _chart
    monkeypatch.setattr(_chart, "_pyplot", lambda: None)
    text = _chart.draw_bars("a < b", {"one": {"x": 3 << 20, "y": None}, "two": {"x": 5 << 20, "y": 1}}, str(tmp_path / "bars.svg"))
    assert len([e for e in xml.fromstring(text).iter() if e.tag.endswith("title")]) == 4
    points = xml.fromstring(_chart.draw_lines("t", {"a": [(1, 10), (2, 5 << 20)]}, "step", None))
    assert any(e.tag.endswith("polyline") for e in points.iter())
    try:
        _chart.draw_lines("t", {}, "step", "x.png")
    except ValueError as error:
        assert "matplotlib" in str(error)
    else:
        raise AssertionError("a PNG without matplotlib")
