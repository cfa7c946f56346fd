"""Programs that report the framework's own counter at every step, and the main function that runs them; knows no framework.

The garbage collector is off while a program runs: what lies in a reference cycle stays, so that a cycle which recording adds shows.

VRAMSCOPE_TEST_ATTACH names a folder: recording begins in this process, after the framework was imported.
VRAMSCOPE_TEST_HOLD=1: the last large tensor that a wrapped function or a layer returned is kept, which is the mistake that the test looks for.
"""
import gc
import json
import math
import os

LARGE = 1 << 18         # elements of 4 bytes: 1 MiB
PROGRAMS = {}
counters = []           # [current, peak since the last time] of the program that runs
_held = []


def _is_large(thing):
    if isinstance(thing, (list, tuple)):
        return any(map(_is_large, thing))
    try:
        return math.prod(getattr(thing, "shape", ())) >= LARGE
    except (TypeError, ValueError):     # not known while a graph is made
        return False


def hold(thing):
    if _is_large(thing):
        _held[:] = [thing]


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def hold_results():
    from vramscope._hooks import wrapping
    around = wrapping.around

    def around_and_hold(original, before=None, after=None):
        def keep(token, ok, result, *args, **kwargs):
            hold(result)
            if after is not None:
                after(token, ok, result, *args, **kwargs)

        return around(original, before, keep)

    wrapping.around = around_and_hold


def run(name, base):
    """The counters of one program."""
    base.prepare()
    gc.collect()
    gc.disable()
    counters.clear()
    base.count()
    PROGRAMS[name]()
    base.count()
    gc.enable()
    gc.collect()
    base.count()
    _held.clear()
    return list(counters)


def main(names, base, references):
    """Prints {"counters": {program: [[current, peak], ...]}, "alive": what references() returns}. `base` prepares a program, counts, and puts
    what is to be held where we do not wrap functions."""
    attach = os.environ.get("VRAMSCOPE_TEST_ATTACH")
    if os.environ.get("VRAMSCOPE_TEST_HOLD"):
        hold_results()
        base.hold_outputs(hold)
    if attach:
        import vramscope
        vramscope.start(attach)
    said = {"counters": {name: run(name, base) for name in names or PROGRAMS}, "alive": references()}
    if attach:
        vramscope.stop()
    print(json.dumps(said))
