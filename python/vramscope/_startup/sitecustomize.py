"""Start-up hook of `vramscope run`: Python finds this file first on PYTHONPATH.

Costs well under a millisecond: it only puts a finder in place that acts when TensorFlow, Keras or PyTorch is imported, and then hands
over to the sitecustomize that would have run without us. Any failure here is ours and must not reach the program.
"""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
# Start-up folders of vramscope that have had their turn: two installations can be on the path, one run inside the other.
_done = sys.__dict__.setdefault("_vramscope_startup", [])
_done.append(_HERE)


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
    """The sitecustomize that this file hides, under its own name."""
    from importlib.machinery import PathFinder
    others = [folder for folder in sys.path if os.path.abspath(folder or os.getcwd()) not in _done]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("VRAMSCOPE_SPOOL") and len(_done) == 1:
    try:
        _watch_imports()
    except Exception as error:  # noqa: BLE001
        print(f"vramscope: no marks from Python: {error}", file=sys.stderr)
_run_the_other_one()
