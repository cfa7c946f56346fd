"""The search for containers that grow: it names them, its work has a limit, and it neither runs nor keeps anything of the program."""
import collections
import gc
import json
import os
import signal
import subprocess
import sys
import types
import weakref
from pathlib import Path

import pytest

from vramscope import holders
from vramscope._hooks import emit, holding, reachable


class Thing:
    """Stands for a tensor."""

    shape = types.SimpleNamespace(num_elements=lambda: 1)
    dtype = types.SimpleNamespace(size=4)


class Step:
    """Steps of a program whose memory grows."""

    def __init__(self, monkeypatch):
        self.number, self.reports = 0, []
        monkeypatch.setattr(emit, "report", lambda event, **fields: self.reports.append(fields))
        monkeypatch.setenv("VRAMSCOPE_DEBUG", "1")
        self._watch = holding.Watch(lambda: self.number, (Thing,))

    def __call__(self):
        self.number += 1
        self._watch.after_step(self.number)

    @property
    def names(self):
        return {report["name"] for report in self.reports}


@pytest.fixture
def step(monkeypatch):
    return Step(monkeypatch)


def few(count=5):
    return [Thing() for _ in range(count)]


class Trainer:
    shared = few()

    def __init__(self):
        self.history = {"loss": few()}


def test_containers_are_named(step):
    def make():
        closed = few()
        return lambda: closed

    def batches():
        waiting = few()
        while True:
            yield waiting

    here, trainer, last, function, generator = few(), Trainer(), collections.deque(few()), make(), batches()
    for _ in range(16):
        for container in (here, trainer.history["loss"], Trainer.shared, last, function(), next(generator)):
            container.append(Thing())
        del container                   # it would be another name of the last one
        step()
    assert {"here", "trainer.history['loss']", "last", "waiting"} <= step.names
    assert any(name.endswith(".shared") for name in step.names) and any("closure" in name for name in step.names), step.names
    [report] = [report for report in step.reports if report["name"] == "here"]
    assert report["count"] == 5 + 12 and report["bytes"] == 4 * report["count"] and report["per_1000_steps"] == 1000
    assert report["file"] == __file__ and report["owner"].startswith("local of test_containers_are_named()")


@pytest.fixture
def work(monkeypatch):
    """Counts the references that the collector follows for us."""
    done = collections.Counter()
    referents, referrers, objects = gc.get_referents, gc.get_referrers, gc.get_objects

    def all_objects(*arguments, **named):
        found = objects(*arguments, **named)
        done["objects"] += len(found)
        return found

    def down(*things):
        found = referents(*things)
        done["referents"] += len(found)
        return found

    def up(*things):
        done["objects"] += len(objects())
        return referrers(*things)

    monkeypatch.setattr(gc, "get_objects", all_objects)
    monkeypatch.setattr(gc, "get_referents", down)
    monkeypatch.setattr(gc, "get_referrers", up)
    return done


def test_the_work_of_a_look_has_a_limit(step, work, request):
    """In a process with as many objects as TensorFlow makes, and with containers that no variable of the program leads to: a cycle that
    the collector has not found yet."""
    request.addfinalizer(gc.enable)
    gc.disable()
    many = [[number] for number in range(300_000)]
    numbers = list(range(1_000_000))
    unreachable = [few()]
    unreachable[0].append(Keeper(unreachable[0]))
    losses, hidden = few(), weakref.ref(unreachable[0][-1])
    del unreachable
    for _ in range(12):
        losses.append(Thing())
        hidden().container.insert(0, hidden().container.pop())
        hidden().container.append(Thing())
        step()
    assert "losses" in step.names
    looks = 2
    assert sum(work.values()) <= looks * 3 * reachable.MOST_REFERENCES, work
    assert len(many) and len(numbers)


def test_many_modules_do_not_hide_what_runs(step, monkeypatch, tmp_path):
    for number in range(600):
        module = types.ModuleType(f"module_{number}")
        module.__file__ = str(tmp_path / f"module_{number}.py")
        vars(module).update((f"name_{other}", [other]) for other in range(60))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    trainer = Trainer()
    for _ in range(12):
        trainer.history["loss"].append(Thing())
        step()
    assert "trainer.history['loss']" in step.names


class Keeper:
    def __init__(self, container):
        self.container = container


def test_a_long_container_is_counted_by_its_newest_entries(step, work):
    losses = few(50_000)
    for _ in range(12):
        losses.append(Thing())
        step()
    [report] = [report for report in step.reports if report["name"] == "losses"]
    assert 50_000 <= report["count"] <= 50_017 and report["bytes"] == 4 * report["count"]


def test_nothing_is_kept(step):
    gc.collect()
    gc.disable()
    try:
        losses, other = few(), Thing()
        for _ in range(12):
            losses.append(Thing())
            step()
        assert "losses" in step.names
        alive = [weakref.ref(thing) for thing in (*losses, other)]
        del losses, other
        assert [reference() for reference in alive] == [None] * len(alive)
    finally:
        gc.enable()


def test_no_code_of_the_program_runs(step):
    calls = []

    class Meta(type):
        def __getattribute__(cls, name):
            calls.append(name)
            return type.__getattribute__(cls, name)

        def __subclasscheck__(cls, other):
            calls.append("subclass")
            return type.__subclasscheck__(cls, other)

    def counting(base, *names):
        def method(name):
            def call(self, *arguments):
                calls.append(name)
                return getattr(base, name)(self, *arguments)
            return call
        return Meta(f"Counting{base.__name__}", (base,), {name: method(name) for name in names})

    special = ("__len__", "__iter__", "__getattribute__", "__bool__", "__hash__", "__eq__")
    lists = counting(list, *special, "__getitem__", "__reversed__")
    dicts = counting(dict, *special, "__getitem__", "values", "items", "keys")
    tuples = counting(tuple, *special, "__getitem__")
    in_lists, in_dicts, in_tuples, inner = [], [], [], lists()
    list.append(inner, few())
    for _ in range(16):
        held, named = lists(), dicts()
        list.append(held, Thing())
        dict.__setitem__(named, "loss", Thing())
        in_lists.append(held)
        in_dicts.append(named)
        in_tuples.append(tuples([Thing()]))
        list.__getitem__(inner, 0).append(Thing())
        calls.clear()
        step()
        assert calls == []
    assert {"in_lists", "in_dicts", "in_tuples", "inner[0]"} <= step.names


SOURCE = "# losses.append(nothing)\nlosses = []\nfor _ in range(9):\n    losses.append(1)\n    print('\\d')\n"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the program, whose file is what the test makes of it."""
    module = types.ModuleType("module_of_the_program")
    module.__file__ = str(tmp_path / "module_of_the_program.py")
    module.losses = few()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def line_reported(step, module):
    for _ in range(12):
        module.losses.append(Thing())
        step()
    [report] = [report for report in step.reports if report["file"] == module.__file__]
    return report["line"]


@pytest.mark.filterwarnings("error")
def test_the_line_that_appends(step, module):
    Path(module.__file__).write_text(SOURCE)
    assert line_reported(step, module) == 4


def make_pipe(path):
    os.mkfifo(path)


def make_sparse(path):
    with open(path, "wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("make", [make_pipe, make_sparse, os.mkdir, lambda path: os.symlink("/dev/zero", path), lambda path: None])
def test_source_that_cannot_be_read(step, module, make):
    """A script may come from a pipe: opening it again would wait for a writer."""
    make(module.__file__)

    def too_long(*_):
        pytest.fail("still reading")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(20)
    try:
        assert line_reported(step, module) == 0
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("text, extends", [
    ("losses.append(x)", True), ("self.losses[k].extend(x)", True), ("losses += [x]", True), ("losses[i] = x", True), ("losses['a'][i] = x", True),
    ("all_losses.append(x)", False), ("losses == x", False), ("losses[i] == x", False), ("losses = []", False), ("print(losses[i], end='')", False),
])
def test_what_extends_a_container(tmp_path, text, extends):
    (tmp_path / "a.py").write_text(f"x = 1\n{text}\n")
    chain = holders.Chain("self.losses['loss']", "", "local", str(tmp_path / "a.py"))
    assert holding._appending_line(chain) == (2 if extends else None)


HELD = """
import tensorflow as tf
history = []
w = tf.Variable(tf.ones([100, 100]))
optimizer = tf.keras.optimizers.SGD(0.01)
for i in range(60):
    with tf.GradientTape() as tape:
        y = tf.matmul(tf.ones([100, 100]), w)
        loss = tf.reduce_sum(y)
    optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
    history.append(y)
print("finished", len(history))
"""


def test_a_list_at_module_level_is_named(record_python, vramscope, python):
    out, printed = record_python(python, HELD)
    assert printed.split() == ["finished", "60"]
    leaks = json.loads(subprocess.run([str(vramscope), "leaks", "--json", str(out)], capture_output=True, text=True, check=False).stdout)
    assert leaks["verdict"] == "growing" and "history holds" in json.dumps(leaks) and "script.py:11" in json.dumps(leaks), leaks
