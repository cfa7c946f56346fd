"""Start-up hook of `vramscope run`: Python finds this file first on PYTHONPATH.

Costs well under a millisecond: it only puts a finder in place that acts when TensorFlow, Keras or PyTorch is imported, and then hands
over to the sitecustomize that would have run without us. Any failure here is ours and must not reach the program.
"""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _watch_imports():
    import importlib.util
    name = "vramscope._hooks.importing"
    path = os.path.join(os.path.dirname(_HERE), "_hooks", "importing.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    module.watch()


def _run_the_other_one():
    """The sitecustomize that this file hides, under its own name."""
    import importlib.machinery
    import importlib.util
    others = [folder for folder in sys.path if os.path.abspath(folder or os.getcwd()) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("VRAMSCOPE_SPOOL"):
    try:
        _watch_imports()
    except Exception as error:  # noqa: BLE001
        print(f"vramscope: no marks from Python: {error}", file=sys.stderr)
_run_the_other_one()
