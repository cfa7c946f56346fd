"""Runs a hook right after a framework was imported. Also loaded on its own by the start-up hook: imports nothing of the package."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any, Optional, Sequence

# Imported module -> the hook that is told about it.
HOOKS = {
    "tensorflow": "vramscope._hooks.tensorflow",
    "keras": "vramscope._hooks.keras",
    "tf_keras": "vramscope._hooks.keras",
    "torch": "vramscope._hooks.torch",
}
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class _Loader(importlib.abc.Loader):
    """The module's own loader, and the hook after it."""

    def __init__(self, loader: Any, hook: str) -> None:
        self._loader = loader
        self._hook = hook

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module must not see us: some inspect their loader.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        run(self._hook, module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self._inside: set = set()

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None,
                  target: Optional[ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name == "vramscope":
            # The package that belongs to the running recorder, also in an environment where it is not installed.
            return importlib.util.spec_from_file_location(
                name, os.path.join(_PACKAGE, "__init__.py"), submodule_search_locations=[_PACKAGE])
        hook = HOOKS.get(name)
        if hook is None or name in self._inside:
            return None
        self._inside.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._inside.discard(name)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, hook)
        return spec


def run(hook: str, module: ModuleType) -> None:
    """Installs one hook. What goes wrong is ours: it is said once and the program goes on without these marks."""
    try:
        importlib.import_module(hook).install(module)
    except Exception as error:  # noqa: BLE001
        if isinstance(error, ModuleNotFoundError) and error.name == hook:
            return
        print(f"vramscope: no marks from {module.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        if os.environ.get("VRAMSCOPE_DEBUG"):
            import traceback
            traceback.print_exc()


def watch() -> None:
    """From now on, hooks run when their frameworks are imported; those that are imported already get theirs now."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for name, hook in HOOKS.items():
        if name in sys.modules:
            run(hook, sys.modules[name])
