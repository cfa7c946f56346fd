"""Runs a hook right after a framework was imported.

Which frameworks there are is what the folders beside this file say: a framework joins by having one with a framework.py.

Also loaded on its own by the start-up hook, in every Python process of a recorded run: it imports nothing of the package, and of the
standard library only what the interpreter has loaded anyway (importlib.util and typing would cost 15 ms).
"""
from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(_HERE)


def _registrations():
    """What each framework says about itself: the names in framework.py of its folder here. Read without importing the folder."""
    for folder in sorted(os.listdir(_HERE)):
        file = os.path.join(_HERE, folder, "framework.py")
        if "." not in folder and os.path.isfile(file):
            name = f"vramscope._hooks.{folder}.framework"
            names = {"__name__": name, "__file__": file}
            exec(SourceFileLoader(name, file).get_code(name), names)
            yield names


FRAMEWORKS = list(_registrations())
# Imported module -> the hook to run.
HOOKS = {module: hook for framework in FRAMEWORKS for module, hook in framework["WATCHED"].items()}


class _Watched(ModuleSpec):
    """A spec that runs the hook when its module is complete. The import system sets this one attribute at the end of an import,
    whether it succeeds or not; a loader around the module's own would appear in every traceback of a failed import."""

    def __setattr__(self, name: str, value) -> None:
        ModuleSpec.__setattr__(self, name, value)
        if name == "_initializing" and not value:
            self.__class__ = ModuleSpec
            module = sys.modules.get(self.name)
            if module is not None:      # else the import has failed
                run(HOOKS[self.name], module)


def _watch_spec(spec) -> bool:
    """True if the hook will run when the module is complete."""
    if type(spec) is ModuleSpec:
        spec.__class__ = _Watched
    return type(spec) is _Watched


class _Finder:
    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if name == "vramscope":
            # The package that belongs to the running recorder, even if this environment does not have it installed.
            file = os.path.join(_PACKAGE, "__init__.py")
            spec = ModuleSpec(name, SourceFileLoader(name, file), origin=file, is_package=True)
            spec.has_location = True
            spec.submodule_search_locations = [_PACKAGE]
            return spec
        if name not in HOOKS:
            return None
        # Only finders after ours: another tool's finder before it may be the one calling.
        for finder in sys.meta_path[sys.meta_path.index(_Finder) + 1:]:
            if hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    _watch_spec(spec)
                    return spec
        return None


def run(hook: str, module) -> None:
    """Installs one hook. A failure is reported once, and the program continues without these marks. Does nothing in a process of a recorded run
    that was started without the recorder (LD_PRELOAD removed)."""
    try:
        if import_module("vramscope._recorder").loaded() is not None:
            import_module(hook).install(module)
    except Exception as error:  # noqa: BLE001
        if isinstance(error, ModuleNotFoundError) and error.name == hook:
            return
        print(f"vramscope: no marks from {module.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        if os.environ.get("VRAMSCOPE_DEBUG"):
            import traceback
            traceback.print_exc()


def watch() -> None:
    """From now on, hooks run when their frameworks are imported. Frameworks that are already imported get theirs now."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    for name, hook in HOOKS.items():
        module = sys.modules.get(name)
        if module is None:
            continue
        spec = getattr(module, "__spec__", None)
        if not (getattr(spec, "_initializing", False) and _watch_spec(spec)):
            run(hook, module)
