"""Objects of the program that recording comes near, and which of them are still there once the program has dropped them.

Some stay until the garbage collector runs, because the framework itself puts them into cycles: the plain run tells which.
"""
import gc
import importlib
import weakref

_references = {}
_after_import = []


class Local:
    """Lives as long as the frame whose local it is."""


class Wrong(Exception):
    """Has weak references, which built-in exceptions do not; and holds its traceback."""


def watch(what, thing):
    _references[what] = weakref.ref(thing)
    return thing


def _alive():
    return sorted(what for what, reference in _references.items() if reference() is not None)


def import_in_a_function(name):
    """Hooks are installed while a framework is imported, and the program's frames are on the stack then."""
    def imports():
        local = watch("local of the frame that imports", Local())  # noqa: F841
        importlib.import_module(name)

    gc.disable()
    imports()
    _after_import[:] = _alive()
    gc.enable()


def alive_after(drop):
    """What is there after drop() has run, before and after the garbage collector."""
    gc.collect()
    gc.freeze()         # the framework's own objects: to look through them takes seconds
    gc.disable()
    drop()
    at_once = _alive()
    gc.enable()
    gc.collect()
    gc.unfreeze()
    return {"at once": sorted({*_after_import, *at_once}), "in the end": _alive(), "watched": sorted(_references)}
