"""Start-up hook of `vramscope run`: the recorder makes it a built-in module of the interpreter (src/capture/python/startup.h), or Python
finds it first on PYTHONPATH.

Costs well under a millisecond: it only puts a finder in place that acts when TensorFlow, Keras or PyTorch is imported, and then hands
over to the sitecustomize that would have run without us. Any failure here is ours and must not reach the program.

Every Python from 2.7 on runs this file; those before 3.9 only hand over.
"""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
# Start-up folders of vramscope that have already run: two installations can be on the path, one run inside the other.
_done = sys.__dict__.setdefault("_vramscope_startup", [])
_done.append(_HERE)


def _is_ours(folder):
    return os.path.abspath(folder or os.getcwd()) in _done


def _leave_path():
    """The program's path is as it would be without us. Processes that it starts find this folder in PYTHONPATH."""
    sys.path[:] = [folder for folder in sys.path if not (folder and _is_ours(folder))]


def _watch_imports():
    from importlib.machinery import SourceFileLoader
    name = "vramscope._hooks.importing"
    loader = SourceFileLoader(name, os.path.join(os.path.dirname(_HERE), "_hooks", "importing.py"))
    module = type(sys)(name)
    module.__file__ = loader.path
    sys.modules[name] = module
    exec(loader.get_code(name), module.__dict__)
    module.watch()


def _run_the_other_one():
    """The sitecustomize that this file hides, under its own name. If there is none, Python gets the same error as without
    vramscope."""
    from importlib.machinery import PathFinder
    spec = PathFinder.find_spec("sitecustomize", [folder for folder in sys.path if not _is_ours(folder)])
    if spec is None or spec.loader is None:
        sys.modules.pop("sitecustomize", None)
        raise ModuleNotFoundError("No module named 'sitecustomize'", name="sitecustomize")
    from importlib.util import module_from_spec
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _run_the_other_one_in_python_2():
    import imp
    ours = sys.modules.pop("sitecustomize", None)       # freed, it would lose the names used here  # noqa: F841
    file, path, description = imp.find_module("sitecustomize", [folder for folder in sys.path if not _is_ours(folder)])
    try:
        imp.load_module("sitecustomize", file, path, description)
    finally:
        if file:
            file.close()


try:
    _leave_path()
    # No framework can be imported in a sub-interpreter, nor can ctypes, which the hooks need.
    if os.environ.get("VRAMSCOPE_SPOOL") and len(_done) == 1 and globals().get("is_main_interpreter", True) and sys.version_info >= (3, 9):
        _watch_imports()
except Exception as error:  # noqa: BLE001
    sys.stderr.write("vramscope: no marks from Python: {}\n".format(error))
if __name__ == "sitecustomize":
    if sys.version_info[0] > 2:
        _run_the_other_one()
    else:
        _run_the_other_one_in_python_2()
