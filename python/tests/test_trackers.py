"""Readings sent to experiment trackers: modules with the signatures of the real clients note what they are called with."""
import pytest

# Parameters as in wandb 0.31 (Run), mlflow 3.17 and comet_ml 3.58.
CLIENTS = {
    "wandb": """
class Run:
    def __init__(self):
        self.step, self.axes, self._rows, self._row = 0, {}, [], {}
    def define_metric(self, name, step_metric=None, step_sync=None, hidden=None, summary=None, overwrite=None):
        self.axes[name] = step_metric
    def _write(self, step):
        if self._row:
            self._rows.append(self._row)
        self.step, self._row = step, {}
    def log(self, data, step=None, commit=None):
        if step is not None and step < self.step:
            return                              # dropped, with a warning
        if step is not None and step > self.step:
            self._write(step)
        self._row.update(data)
        if commit if commit is not None else step is None:
            self._write(self.step + 1)
    @property
    def logged(self):
        return self._rows + [self._row] * bool(self._row)
run = None
def init():
    global run
    run = Run()
""",
    "mlflow": """
logged, _run = [], None
def start_run():
    global _run
    _run = object()
def active_run():
    return _run
def log_metrics(metrics, step=None, synchronous=None, run_id=None, timestamp=None, model_id=None, dataset=None):
    logged.append((dict(metrics), step))
""",
    "comet_ml": """
class Experiment:
    logged = []
    def log_metrics(self, dic, prefix=None, step=None, epoch=None, include_context=True):
        self.logged.append((dict(dic), step))
_experiment = None
def start():
    global _experiment
    _experiment = Experiment()
def get_running_experiment():
    return _experiment
""",
}


@pytest.fixture
def clients(tmp_path):
    for name, source in CLIENTS.items():
        (tmp_path / f"{name}.py").write_text(source)


LOOPS = """
import json, warnings
import numpy as np
import keras, tensorflow as tf
import comet_ml, mlflow, wandb
import vramscope.keras as vk
from vramscope._rows import MemoryRows

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
model.compile("sgd", "mse")
x, y = np.zeros((16, 8), "float32"), np.zeros((16, 4), "float32")
refused = []
for name in ("wandb", "mlflow", "comet"):
    try:
        model.fit(x, y, verbose=0, callbacks=[vk.MemoryCallback(log_to=name)])
    except RuntimeError as error:
        refused.append(str(error))
wandb.init(), mlflow.start_run(), comet_ml.start()

memory = vk.MemoryCallback(target_batches=[2], log_to=["wandb", "mlflow", "comet"])
model.fit(x, y, batch_size=4, epochs=2, verbose=0, callbacks=[memory])
ends = [[r.batch, r.current / 2**20, r.peak / 2**20] for r in memory.rows if r.at == "end"]
sent = {"wandb": list(wandb.run.logged), "mlflow": list(mlflow.logged), "comet": list(comet_ml.get_running_experiment().logged)}

axes = wandb.run.axes

rows = MemoryRows("CPU:0", target_batches=[2], log_to="mlflow")
mlflow.logged.clear()
for epoch in (1, 2):
    rows.read("train", epoch, None, "begin")
    for batch in (1, 2, 3):
        rows.read("train", epoch, batch, "begin")
        rows.read("train", epoch, batch, "end")
    rows.read("train", epoch, None, "end")
steps = [[sorted(values)[0], step] for values, step in mlflow.logged]

wandb.init()
ours = MemoryRows("CPU:0", log_to="wandb")
for epoch in range(1, 6):
    ours.read("train", epoch, None, "begin")
    ours.read("train", epoch, None, "end")
    ours.read("evaluate", epoch, None, "begin")
    ours.read("evaluate", epoch, None, "end")
    if epoch < 4:
        wandb.run.log({"loss": epoch}, step=epoch)
beside = [[row.get("memory/train/step"), row.get("memory/evaluate/step"), row.get("loss")] for row in wandb.run.logged]

def broken(*_, **__):
    raise ConnectionError("the server is gone")
mlflow.log_metrics = broken
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    other = vk.MemoryCallback(log_to=("mlflow", "comet"))
    before = len(comet_ml.get_running_experiment().logged)
    model.fit(x, y, epochs=3, verbose=0, callbacks=[other])
print(json.dumps({"refused": refused, "ends": ends, "sent": sent, "axes": axes, "beside": beside, "steps": steps,
                  "warned": [str(w.message) for w in caught if "vramscope" in str(w.message)],
                  "went_on": len(comet_ml.get_running_experiment().logged) - before}))
"""


def test_trackers_get_the_rows_of_the_callback(run_python, python, clients):
    answer = run_python(python, LOOPS).answer
    assert [line.split(";")[1] for line in answer["refused"]] == \
        [f" call {start} before training starts" for start in ("wandb.init()", "mlflow.start_run()", "comet_ml.start()")]
    names = {None: "memory/train/cpu0/", 2: "memory/train_batch/cpu0/"}
    expected = [{names[batch] + "current_mib": current, names[batch] + "peak_mib": peak} for batch, current, peak in answer["ends"]]
    steps = [2, 0, 6, 1]                    # batch 2 of 4, epoch 0, batch 6 of 8, epoch 1: as Keras' own TensorBoard callback counts
    assert answer["sent"]["mlflow"] == answer["sent"]["comet"] == [[values, step] for values, step in zip(expected, steps)]
    axes = ["memory/train_batch/step", "memory/train/step"] * 2
    # A row of W&B has one reading of each axis.
    points = [{**values, axis: step} for values, axis, step in zip(expected, axes, steps)]
    assert answer["sent"]["wandb"] == [{**points[0], **points[1]}, {**points[2], **points[3]}]
    # A program that counts the steps itself keeps all that it logs.
    assert [row[2] for row in answer["beside"] if row[2] is not None] == [1, 2, 3]
    assert [row[0] for row in answer["beside"] if row[0] is not None] == [row[1] for row in answer["beside"] if row[1] is not None] == [0, 1, 2, 3, 4]
    assert {name: axis for name, axis in answer["axes"].items() if axis == axes[0]}.keys() == expected[0].keys()
    assert answer["steps"] == [["memory/train_batch/cpu0/current_mib", 2], ["memory/train/cpu0/current_mib", 0],
                               ["memory/train_batch/cpu0/current_mib", 5], ["memory/train/cpu0/current_mib", 1]]
    assert answer["warned"] == ["vramscope: log_to='mlflow': the server is gone; no more readings are sent there"]
    assert answer["went_on"] == 3


def test_wrong_trackers(monkeypatch, tmp_path):
    from vramscope._trackers import Trackers
    with pytest.raises(ValueError, match="expected one of 'wandb', 'mlflow', 'comet'"):
        Trackers("tensorboard")
    monkeypatch.setitem(__import__("sys").modules, "wandb", None)
    with pytest.raises(ImportError, match="wandb"):
        Trackers("wandb")
    monkeypatch.setenv("RANK", "1")
    Trackers("wandb").check()               # only the first rank sends
