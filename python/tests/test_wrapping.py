"""The wrapper around a framework's function: seen by nobody, and holding nothing."""

PROGRAM = """
import gc, inspect, json, sys, traceback, warnings, weakref
from vramscope._hooks import wrapping

log, out = [], {}

class Layer:
    def plain(self, x, *, k=1):
        "its own text"
        if x is None:
            raise ValueError("its own")
        warnings.warn("seen from the caller", stacklevel=2)
        return x, k
    def call(self, x, *, k=1):
        "its own text"
        if x is None:
            raise ValueError("its own")
        warnings.warn("seen from the caller", stacklevel=2)
        return x, k
    def added(self, x):
        return x + 1
    def interrupted(self, x):
        return x + 1
    __call__ = lambda self, x: x * 2

def trace(method):
    try:
        method(None)
    except ValueError as error:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)], repr(error.__context__), repr(error.__cause__)

def broken(*args, **kwargs):
    raise KeyError("ours")

def interrupt(*args, **kwargs):
    raise KeyboardInterrupt

wrapping.wrap(Layer, "call", lambda self, *args, **kwargs: log.append((args, kwargs)) or "token",
              lambda token, ok, result, self, *args, **kwargs: log.append((token, ok, result, args, kwargs)))
layer = Layer()
out["twice"] = wrapping.wrap(Layer, "call", None, None)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    out["result"] = layer.call(3, k=4)
    here = inspect.currentframe().f_lineno - 1
out["warning"] = seen[0].lineno == here
out["log"] = list(log)
log.clear()
out["traces"] = [trace(layer.plain)[1:], trace(layer.call)[1:], trace(layer.call)[0]]
out["failed"] = log[1]
log.clear()
out["same"] = [inspect.signature(Layer.call) == inspect.signature(Layer.plain), Layer.call.__doc__, Layer.call.__qualname__, Layer.call.__module__,
               inspect.isfunction(Layer.call), inspect.ismethod(layer.call), inspect.getsourcelines(Layer.call)[1] > 1]

class Tensor:
    pass

gc.collect()
gc.disable()
warnings.simplefilter("ignore")
tensor = Tensor()
alive = weakref.ref(tensor)
layer.call(tensor)
log.clear()
del tensor
out["kept"] = alive() is not None

wrapping.wrap(Layer, "added", broken, broken)
out["ours"] = layer.added(1)
wrapping.wrap(Layer, "interrupted", None, interrupt)
try:
    layer.interrupted(1)
except KeyboardInterrupt:
    out["interrupt"] = True
wrapping.wrap(Layer, "__call__")
out["operator"] = layer(4)
out["shown"] = [repr(Layer.call) == repr(Layer.call.__vramscope_original__), str(type(Layer.__dict__["call"])), type(Layer.call).__module__,
                repr(layer.call).startswith("<bound method Layer.call of <"), Layer.call.__class__.__name__]
try:
    Layer.call + 1
except TypeError as error:
    out["misused"] = str(error)
out["weak"] = weakref.ref(Layer.__dict__["call"])() is not None
print(json.dumps(out))
"""


def test_a_wrapper_is_seen_by_nobody(run_python, this_python):
    said = run_python(this_python, PROGRAM, record=True, hook=False).answer
    assert said["twice"] is False and said["result"] == [3, 4] and said["warning"]
    assert said["log"] == [[[3], {"k": 4}], ["token", True, [3, 4], [3], {"k": 4}]] and said["failed"] == ["token", False, None, [None], {}]
    assert said["traces"][0] == said["traces"][1] and said["traces"][2] == ["trace", "call"]
    assert said["same"] == [True, "its own text", "Layer.call", "__main__", True, True, True]
    assert said["shown"] == [True, "<class 'function'>", "builtins", True, "function"]
    assert said["misused"] == "unsupported operand type(s) for +: 'function' and 'int'"
    assert not said["kept"] and said["ours"] == 2 and said["interrupt"] and said["operator"] == 8 and said["weak"]


TWICE = """
import json
from vramscope._hooks import wrapping

twice, original = [], wrapping.is_wrapped

def is_wrapped(function):
    if original(function):
        twice.append(function.__qualname__)
    return original(function)

wrapping.is_wrapped = is_wrapped
import keras, tensorflow
print(json.dumps(twice))
"""


def test_no_two_hooks_want_the_same_function(run_python, each_python):
    """The second would silently do nothing: wrap() leaves alone what is wrapped already."""
    assert run_python(each_python, TWICE, record=True).answer == []
