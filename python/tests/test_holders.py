"""who_holds names the objects that keep something alive."""
import sys
import types
import weakref

import vramscope
from vramscope import holders


class Thing:
    """Stands for a tensor: any object that the collector of garbage knows."""


class Keeper:
    def __init__(self, thing):
        self.history = {"loss": [None, (0, thing)]}


def expressions(thing):
    return [chain.expression for chain in holders.who_holds(thing)]


def test_locals_lists_attributes_and_closures():
    target = Thing()
    kept = [1, target]
    keeper = Keeper(target)

    def inner():
        return target

    found = expressions(target)
    assert "target" in found and "kept[1]" in found and "keeper.history['loss'][1][1]" in found
    assert any("inner" in expression and "closure" in expression for expression in found) or "target" in found
    del kept, keeper, inner


def test_a_global_of_a_module():
    module = types.ModuleType("some_module")
    module.__file__ = "/x/some_module.py"
    sys.modules["some_module"] = module
    try:
        module.losses = [Thing() for _ in range(5)]
        text = str(vramscope.who_holds(module.losses[3]))
        assert text == "losses[3], global of some_module (some_module.py)"
    finally:
        del sys.modules["some_module"]


def test_a_traceback_of_the_last_error(monkeypatch):
    def fails():
        batch = Thing()
        raise ValueError(id(batch))

    try:
        fails()
    except ValueError as error:
        saved = error
    monkeypatch.setattr(sys, "last_value", saved, raising=False)
    monkeypatch.setattr(sys, "last_exc", saved, raising=False)
    target = saved.__traceback__.tb_next.tb_frame.f_locals["batch"]
    chains = holders.who_holds(target)
    assert any(chain.kind == "traceback" and chain.expression == "batch" and "ValueError" in chain.root for chain in chains)


def test_looking_keeps_no_local_alive():
    kept, batch = [Thing()], Thing()
    alive = weakref.ref(batch)
    assert "kept[0]" in expressions(kept[0])
    del batch
    assert alive() is None


def test_locals_that_the_program_asked_for_stay():
    kept = [Thing()]
    mine = locals()
    assert "kept[0]" in expressions(kept[0])
    assert mine["kept"] is kept


def test_nobody():
    assert str(holders.Holders()) == "no Python object holds it"


ADDRESS = """
import json
import tensorflow as tf
import vramscope
from vramscope import _address

variable = tf.Variable(tf.random.normal([100, 100]))
losses = [tf.random.normal([64]) for _ in range(3)]
with tf.GradientTape(persistent=True) as tape:
    y = variable * 2.0
address, size = _address.of(losses[1])
print(json.dumps([str(vramscope.who_holds(address + 8)), str(vramscope.who_holds(_address.of(variable)[0])), size]))
"""


def test_by_address(run_python, each_python):
    tensor, variable, size = run_python(each_python, ADDRESS).answer
    assert "losses[1], global of __main__ (script.py)" in tensor and size == 256
    assert "a variable: its value lives as long as it does" in variable
    assert "a persistent GradientTape that is alive" in variable and "tape, " in variable
