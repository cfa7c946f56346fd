"""who_holds names the objects that keep something alive."""
import collections
import gc
import sys
import types
import weakref

import pytest

import vramscope
from vramscope import _cycles, holders


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


def test_several_globals_of_one_module():
    """A name of the tensor itself does not hide the list that will still hold it once the name is gone."""
    module = types.ModuleType("some_module")
    sys.modules["some_module"] = module
    try:
        module.loss = Thing()
        module.losses, module.keeper = [module.loss], Keeper(module.loss)
        assert {"loss", "losses[0]", "keeper.history['loss'][1][1]"} <= set(expressions(module.loss))
    finally:
        del sys.modules["some_module"]


def test_several_locals_of_one_generator():
    def generator():
        batch = Thing()
        batches = [batch]
        yield batch
        del batches

    waiting = generator()
    found = expressions(next(waiting))
    assert "batch" in found and "batches[0]" in found


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


@pytest.fixture
def no_collector():
    """What is in a reference cycle stays: nothing hides it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_looking_makes_no_reference_cycle(no_collector):
    def look(container):
        local = Thing()
        holders.who_holds(container)
        return weakref.ref(local)

    last = collections.deque((Thing() for _ in range(3)), maxlen=3)
    alive = [weakref.ref(thing) for thing in last]
    assert look(last)() is None
    assert "last[2]" in expressions(last[2])
    last.extend(Thing() for _ in range(3))
    assert [reference() for reference in alive] == [None] * 3


def test_a_cycle_is_found_with_few_passes_over_all_objects(no_collector):
    """Each call of gc.get_referrers goes through every object of the process."""
    class Node:
        pass

    first = Node()
    first.thing, first.others = Thing(), [Node() for _ in range(500)]
    for other in first.others:
        other.first = first
    target = weakref.ref(first.thing)
    del first, other
    passes = []
    sys.setprofile(lambda frame, event, function: passes.append(event) if function is gc.get_referrers and event == "c_call" else None)
    try:
        kinds = _cycles.members(target())
    finally:
        sys.setprofile(None)
    assert kinds == ["Node", "list"] and len(passes) < 10
    gc.collect()
    assert target() is None


def test_after_an_error_nothing_is_kept_but_by_the_error(no_collector, monkeypatch):
    def fails():
        batch = Thing()
        raise MemoryError(weakref.ref(batch))

    try:
        fails()
    except MemoryError as error:
        alive = error.args[0]
        monkeypatch.setattr(sys, "last_value", error, raising=False)
        monkeypatch.setattr(sys, "last_exc", error, raising=False)
    assert "traceback of the last MemoryError" in str(holders.who_holds(alive()))
    monkeypatch.undo()
    assert alive() is None


def test_a_local_of_a_generator_that_waits(no_collector):
    def batches():
        batch = Thing()
        yield weakref.ref(batch)

    waiting = batches()
    alive = next(waiting)
    assert str(holders.who_holds(alive())).startswith("batch, local of batches() (test_holders.py:")
    del waiting
    assert alive() is None


def test_proxies_are_not_woken(no_collector):
    class Proxy:
        def __init__(self, thing):
            object.__setattr__(self, "thing", thing)

        def __getattribute__(self, name):
            raise RuntimeError(f"{name} was asked for")

    class Slots:
        __slots__ = ("thing", "other")

    target = Thing()
    proxy, slots = Proxy(target), Slots()
    slots.thing = target
    assert {"proxy.thing", "slots.thing"} <= set(expressions(target))
    del proxy, slots


def test_locals_that_the_program_asked_for_stay():
    kept = [Thing()]
    mine = locals()
    assert "kept[0]" in expressions(kept[0])
    assert mine["kept"] is kept


UNFINISHED = """
import ctypes, gc, sys
from vramscope import holders
from vramscope._hooks import holding

class Thing:
    pass

def unfinished(kind, places, filled, thing):
    make, put = ctypes.pythonapi[f"Py{kind}_New"], ctypes.pythonapi[f"Py{kind}_SetItem"]
    make.restype, make.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
    put.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.py_object]
    address = make(places)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    put(address, filled, thing)
    return ctypes.cast(address, ctypes.py_object).value

kept = Thing()
for kind in ("Tuple", "List"):
    globals()[kind] = [unfinished(kind, 8, 5, kept), unfinished(kind, 8, 0, [kept])]
assert [chain.expression for chain in holders.who_holds(kept)] == ["kept"]
assert holding.Watch(int, (Thing,))._containers() == []
"""


def test_a_tuple_that_c_code_left_unfinished(run_python, this_python):
    """As out of memory in a gradient leaves them. In a process of its own: the first version ended it."""
    run_python(this_python, UNFINISHED)


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
    assert "a variable, which keeps its value alive" in variable
    assert "a persistent GradientTape that is still alive" in variable and "tape, " in variable
