"""Runs a hook right after a framework was imported.

Also loaded on its own by the start-up hook, in every Python process of a recorded run: it imports nothing of the package, and of the
standard library only what the interpreter has loaded anyway (importlib.util and typing would cost 15 ms).
"""
from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader

# Imported module -> the hook that is told about it.
HOOKS = {
    "tensorflow": "vramscope._hooks.tensorflow",
    "keras": "vramscope._hooks.keras",
    "tf_keras": "vramscope._hooks.keras",
    "torch": "vramscope._hooks.torch",
    "torch._dynamo.convert_frame": "vramscope._hooks.torch_loops",
    "torch._dynamo.output_graph": "vramscope._hooks.torch_loops",
    "torch._functorch._aot_autograd.runtime_wrappers": "vramscope._hooks.torch_loops",
    "torch._inductor.codecache": "vramscope._hooks.torch_loops",
    "torch.distributed.distributed_c10d": "vramscope._hooks.torch_loops",
    "torch.nn.parallel.distributed": "vramscope._hooks.torch_loops",
    "torch.utils.checkpoint": "vramscope._hooks.torch_loops",
    "torch.utils.data._utils.worker": "vramscope._hooks.torch_loops",
    "torch.distributed.fsdp._fully_shard._fsdp_param_group": "vramscope._hooks.torch_loops",
    "lightning.pytorch.trainer.connectors.callback_connector": "vramscope._hooks.torch_loops",
    "pytorch_lightning.trainer.connectors.callback_connector": "vramscope._hooks.torch_loops",
    "transformers.trainer": "vramscope._hooks.torch_loops",
}
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class _Loader:
    """The module's own loader, and the hook after it."""

    def __init__(self, loader, hook: str) -> None:
        self._loader = loader
        self._hook = hook

    def create_module(self, spec: ModuleSpec):
        return self._loader.create_module(spec)

    def exec_module(self, module) -> None:
        # The module must not see us: some inspect their loader.
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        run(self._hook, module)


class _Finder:
    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if name == "vramscope":
            # The package that belongs to the running recorder, also in an environment where it is not installed.
            file = os.path.join(_PACKAGE, "__init__.py")
            spec = ModuleSpec(name, SourceFileLoader(name, file), origin=file, is_package=True)
            spec.has_location = True
            spec.submodule_search_locations = [_PACKAGE]
            return spec
        hook = HOOKS.get(name)
        if hook is None:
            return None
        # Only those behind us: another tool's finder in front may be asking us.
        for finder in sys.meta_path[sys.meta_path.index(_Finder) + 1:]:
            if hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _Loader(spec.loader, hook)
                    return spec
        return None


def run(hook: str, module) -> None:
    """Installs one hook. What goes wrong is ours: it is said once and the program goes on without these marks."""
    try:
        import_module(hook).install(module)
    except Exception as error:  # noqa: BLE001
        if isinstance(error, ModuleNotFoundError) and error.name == hook:
            return
        print(f"vramscope: no marks from {module.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        if os.environ.get("VRAMSCOPE_DEBUG"):
            import traceback
            traceback.print_exc()


def watch() -> None:
    """From now on, hooks run when their frameworks are imported; those that are imported already get theirs now."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    for name, hook in HOOKS.items():
        if name in sys.modules:
            run(hook, sys.modules[name])
