"""Names of network layers and parameters.

A model is named when it is called for the first time: by one hook in front of all modules, which goes away as soon as no module
without a name is met any more. In the steady state no hook is left, so that module calls cost what they cost without us, and
torch.compile sees nothing of ours.
"""
from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any, Dict, List, Optional, Tuple

from . import emit, torch_frames, torch_tags, training, wrapping

_IDLE_CALLS = 20_000            # so many calls of modules that have a name: nobody new will come
_QUIET_STEPS = 4

_torch: Any = None
_handle: Any = None             # of the global hook, while it is in place
_idle = 0
_named: Dict[int, "weakref.ref[Any]"] = {}
_unnamed_seen = 0
_quiet_steps = 0
parameter_names: Dict[int, Tuple[str, str]] = {}     # id(parameter) -> its path, the layer that owns it


def install(torch: Any) -> None:
    global _torch
    _torch = torch
    arm()
    wrapping.wrap(torch, "compile", _before_compile)


def arm() -> None:
    """Every module call is looked at from now on."""
    global _handle, _idle
    _idle = 0
    if _handle is None and torch_frames.library() is not None:
        _handle = _torch.nn.modules.module.register_module_forward_pre_hook(_first_call)


def disarm() -> None:
    global _handle
    handle, _handle = _handle, None
    if handle is not None:
        handle.remove()


def _is_named(module: Any) -> bool:
    known = _named.get(id(module))
    return known is not None and known() is module


def _first_call(module: Any, inputs: Any) -> None:
    global _idle
    if _compiling():
        return
    if _is_named(module):
        _idle += 1
        if _idle > _IDLE_CALLS:
            disarm()
        return
    _idle = 0
    emit.quietly(lambda: name_model(module))
    emit.quietly(lambda: torch_tags.tag_batch(inputs))


def _compiling() -> bool:
    """The compiler follows us into this hook: it must find nothing there."""
    compiler = getattr(_torch, "compiler", None)
    return compiler is not None and hasattr(compiler, "is_compiling") and compiler.is_compiling()


def name_model(root: Any) -> None:
    """Tells the recorder the names of all layers of a model, and where its parameters and buffers lie."""
    begin_first_step()
    original = getattr(root, "_orig_mod", None)     # made by torch.compile
    if original is not None:
        disarm()
        _named[id(root)] = weakref.ref(root)
        root = original
    wrapped = getattr(root, "module", None)
    if type(root).__name__ in ("DistributedDataParallel", "DataParallel") and wrapped is not None:
        _named[id(root)] = weakref.ref(root)
        root = wrapped
    kind = type(root).__name__
    # Layers that have a name already get a new one: a part of the model may have been called before the whole.
    objects: List[int] = []
    names: List[bytes] = []
    for path, module in root.named_modules():
        _named[id(module)] = weakref.ref(module)
        objects.append(id(module))
        names.append(f"{path or kind}/{type(module).__name__}".encode("utf-8", "replace"))
    _tell_layers(objects, names)
    for path, parameter in root.named_parameters():
        parameter_names[id(parameter)] = path, path.rpartition(".")[0] or kind
    torch_tags.tag_tensors(((path, path.rpartition(".")[0] or kind, p) for path, p in root.named_parameters()), "parameter")
    torch_tags.tag_tensors(((path, path.rpartition(".")[0] or kind, b) for path, b in root.named_buffers()), "buffer")


def _tell_layers(objects: List[int], names: List[bytes]) -> None:
    library = torch_frames.library()
    count = len(objects)
    if library is not None and count:
        library.vramscope_name_layers((ctypes.c_uint64 * count)(*objects), (ctypes.c_char_p * count)(*names), ctypes.c_size_t(count))


def is_module(value: Any) -> bool:
    return issubclass(type(value), _torch.nn.Module)        # not isinstance: that may wake a proxy


_all_named = False
_looks_left = 4


def name_all_models() -> None:
    """All models that there are. A part of a model may be compiled, or all of it inside a function, so that the model itself is
    never called where we could see it. Looks at every object once, which takes tenths of a second: beside compiling, nothing."""
    global _all_named
    if _all_named:
        return
    _all_named = True
    modules = [value for value in gc.get_objects() if is_module(value) and not isinstance(value, _torch.fx.GraphModule)]
    parts = {id(part) for module in modules for part in module.children()}
    for module in modules:
        if id(module) not in parts:
            emit.quietly(lambda: name_model(module))


_begun = False


def begin_first_step() -> None:
    """The first model is called: the first step begins with what it allocates."""
    global _begun
    library = torch_frames.library()
    if not _begun and library is not None and not training.inside_loop():
        _begun = True
        library.vramscope_step_done(ctypes.c_int64(0))


def after_step() -> None:
    """Looks at modules again if one without a name was met; stops looking after a few steps without one."""
    global _unnamed_seen, _quiet_steps, _all_named, _looks_left
    library = torch_frames.library()
    if library is None:
        return
    seen = library.vramscope_unnamed_layers()
    if seen != _unnamed_seen:
        _unnamed_seen, _quiet_steps = seen, 0
        if not _compiled:
            arm()
        elif _looks_left > 0:       # a hook would make the compiler begin anew
            _looks_left, _all_named = _looks_left - 1, False
            name_all_models()
    elif _handle is not None:
        _quiet_steps += 1       # several optimizers may step before the model without a name is called again
        if _quiet_steps >= _QUIET_STEPS:
            disarm()


_compiled = False


def _before_compile(original: Any) -> Any:
    """torch.compile: the model is at hand, and from now on no hook of ours may be in the compiler's way."""
    def compile(model: Any = None, *args: Any, **options: Any) -> Any:   # noqa: A001 (its name)
        global _compiled
        _compiled = True
        disarm()
        module = _module_behind(model)
        if module is not None and not _is_named(module):
            emit.quietly(lambda: name_model(module))
        return original(model, *args, **options)
    return compile


def _module_behind(model: Any) -> Optional[Any]:
    for candidate in (model, getattr(model, "__self__", None)):     # a module, or one of its methods (Module.compile)
        if isinstance(candidate, _torch.nn.Module):
            return candidate
    return None
