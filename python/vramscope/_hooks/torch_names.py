"""Names of network layers and parameters.

A model is named when it is called for the first time, by one global hook on all modules that is removed as soon as all modules have
names. In the steady state no hook is left, so module calls cost nothing extra, and torch.compile sees nothing of ours.
"""
from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import sys
import weakref
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from . import emit, torch_frames, torch_tags, training, wrapping

_IDLE_CALLS = 20_000            # after this many calls of named modules, no new ones are expected
_QUIET_STEPS = 4

_torch: Any = None
_handle: Any = None             # of the global hook, while it is installed
_idle = 0
_named: Dict[int, "weakref.ref[Any]"] = {}
_models: List["_Model"] = []    # those that are alive and have parameters
_unnamed_seen = 0
_quiet_steps = 0
_parameters: Dict[int, Tuple["weakref.ref[Any]", str, str]] = {}     # by address: itself, its path, the layer that owns it
naming = 0                      # number of models named so far


def install(torch: Any) -> None:
    global _torch
    _torch = torch
    arm()
    wrapping.wrap(torch, "compile", _compile_begins)
    watch = getattr(torch.nn.modules.module, "register_module_module_registration_hook", None)     # since PyTorch 2.0
    if watch is not None:
        watch(_became_part)
    for kind in ("buffer", "parameter"):
        watch = getattr(torch.nn.modules.module, f"register_module_{kind}_registration_hook", None)
        if watch is not None:
            watch(functools.partial(_was_set, kind))
    wrapping.wrap(torch.nn.Module, "__setstate__", after=_was_copied)


def arm() -> None:
    """From now on, every module call is inspected."""
    global _handle, _idle, _quiet_steps
    _idle = _quiet_steps = 0
    if _handle is None and torch_frames.library() is not None:
        _handle = _torch.nn.modules.module.register_module_forward_pre_hook(_first_call)


def expect_model() -> None:
    """An optimizer is created: its model may be new."""
    if not _compiled:
        arm()


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
    """The compiler traces into this hook, so it must find nothing there."""
    compiler = getattr(_torch, "compiler", None)
    return compiler is not None and hasattr(compiler, "is_compiling") and compiler.is_compiling()


_part_of: "weakref.WeakKeyDictionary[Any, weakref.ref[Any]]" = weakref.WeakKeyDictionary()      # the module that a module was put into


def _became_part(module: Any, _: str, part: Any) -> None:
    if part is not None:
        emit.quietly(lambda: _part_of.__setitem__(part, weakref.ref(module)))


_prefixes: "weakref.WeakKeyDictionary[Any, Tuple[str, str]]" = weakref.WeakKeyDictionary()     # of a layer's own tensors, and the layer


def _was_set(category: str, module: Any, name: str, tensor: Any) -> None:
    """`self.mean = ...` in a forward pass: from now on, another tensor is the buffer or the parameter."""
    if tensor is not None and not _compiling():
        emit.quietly(lambda: _tag_set(category, module, name, tensor))


def _tag_set(category: str, module: Any, name: str, tensor: Any) -> None:
    known = _prefixes.get(module)
    if known is not None:
        torch_tags.tag_tensors(((known[0] + name, known[1], tensor),), category)


def tag_buffers() -> None:
    """Again, because `model.double()` and `model.to()` replace them without a word."""
    for model in list(_models):
        root = model.root()
        for module in () if root is None else root.modules():
            known = _prefixes.get(module)
            if known is not None:
                buffers = module.named_buffers(recurse=False)
                torch_tags.tag_tensors(((known[0] + name, known[1], buffer) for name, buffer in buffers), "buffer")


_copies: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _was_copied(token: None, ok: bool, result: Any, module: Any, *_: Any, **__: Any) -> None:
    """By copy.deepcopy, or read from a file."""
    if ok:
        _copies.add(module)


def _name_the_uncalled() -> None:
    """Models that no step calls: the average of another one's weights, the best one so far."""
    modules = [*_copies, *filter(None, (whole() for whole in list(_part_of.values())))]
    parts = {id(part) for module in modules for part in module.children()}
    for module in modules:
        if id(module) not in parts and not _is_named(module):
            emit.quietly(lambda: name_model(module))


def _is_callable(module: Any) -> bool:
    """Not a ModuleList, nor a class that only holds its parts together and calls them one by one."""
    return type(module).forward is not _torch.nn.Module.forward


def _may_be_skipped(whole: Any, part: Any) -> bool:
    """Whether a program may well call the parts of a model and never the whole. Sequential only lists them: checkpoint_sequential() and loops over its
    layers call them one by one."""
    return type(whole) is _torch.nn.Sequential or not (_is_callable(whole) and _is_callable(part))


def _whole(module: Any) -> Any:
    """The model that a module is a part of, if that is never called itself."""
    for _ in range(100):
        whole = _part_of.get(module, lambda: None)()
        if whole is None or all(part is not module for part in whole.children()) or not _may_be_skipped(whole, module):
            return module
        module = whole
    return module


def name_model(root: Any) -> None:
    """Reports the names of all layers of a model, and the addresses of its parameters and buffers."""
    global naming
    naming += 1
    root = _whole(root)
    begin_first_step()
    original = getattr(root, "_orig_mod", None)     # created by torch.compile
    if original is not None:
        disarm()
        _named[id(root)] = weakref.ref(root)
        root = original
    wrapped = getattr(root, "module", None)
    if type(root).__name__ in ("DistributedDataParallel", "DataParallel") and wrapped is not None:
        _named[id(root)] = weakref.ref(root)
        root = wrapped
    kind = type(root).__name__
    parameters = [(path, parameter) for path, parameter in root.named_parameters()]
    modules = [(path, module) for path, module in root.named_modules()]
    model = _prefix_of(root, modules) if parameters else ""
    # Layers that already have a name get a new one, because a part of the model may have been called before the whole.
    objects: List[int] = []
    names: List[bytes] = []
    for path, module in modules:
        _named[id(module)] = weakref.ref(module, functools.partial(_gone, id(module))) if parameters else weakref.ref(module)
        objects.append(id(module))
        names.append(f"{model + path if path else model.rstrip('.') or kind}/{type(module).__name__}".encode("utf-8", "replace"))
    _tell_layers(objects, names)

    def owned(path: str) -> Tuple[str, str]:
        path = model + path
        return path, path.rpartition(".")[0] or kind

    for path, module in modules:
        _prefixes[module] = (model + path + "." if path else model, model + path or kind)
    for path, parameter in parameters:
        _parameters[id(parameter)] = (weakref.ref(parameter), *owned(path))
    torch_tags.tag_tensors(((*owned(path), parameter) for path, parameter in parameters), "parameter")
    torch_tags.tag_tensors(((*owned(path), buffer) for path, buffer in root.named_buffers()), "buffer")


def name_of(parameter: Any) -> Optional[Tuple[str, str]]:
    """Its path, and the layer that owns it."""
    known = _parameters.get(id(parameter))
    return known[1:] if known is not None and known[0]() is parameter else None


class _Model(NamedTuple):
    root: "weakref.ref[Any]"
    prefix: str                 # names of its layers
    layers: FrozenSet[str]


def _prefix_of(root: Any, modules: List[Tuple[str, Any]]) -> str:
    """A prefix that distinguishes the layers of this model from those of other live models, such as "Discriminator."; empty if
    not needed."""
    parts = {id(module) for _, module in modules}
    others = [model for model in _models if model.root() is not None and id(model.root()) not in parts]
    taken = {layer for model in others for layer in model.layers}
    kind = type(root).__name__
    candidates = itertools.chain(("", kind + "."), (f"{kind} {number}." for number in itertools.count(2)))
    for prefix in candidates:
        layers = frozenset(prefix + path if path else prefix.rstrip(".") or kind for path, _ in modules)
        if not layers & taken:
            break
    _models[:] = [*others, _Model(weakref.ref(root), prefix, layers)]
    return prefix


def _gone(address: int, module: "weakref.ref[Any]") -> None:
    """A layer was freed. Another one may get its address and must not get its name."""
    if not sys.is_finalizing() and _named.get(address) is module:
        del _named[address]
        _tell_layers([address], [b""])


def _tell_layers(objects: List[int], names: List[bytes]) -> None:
    library = torch_frames.library()
    count = len(objects)
    if library is not None and count:
        library.vramscope_name_layers((ctypes.c_uint64 * count)(*objects), (ctypes.c_char_p * count)(*names), ctypes.c_size_t(count))


def is_module(value: Any) -> bool:
    return issubclass(type(value), _torch.nn.Module)        # not isinstance, which may trigger a proxy


_all_named = False
_looks_left = 4


def name_all_models() -> None:
    """Names all existing models. A part of a model may be compiled, or the whole model inside a function, so that the model itself is
    never called where a hook could see it. Inspecting every object once takes tenths of a second, which is negligible
    compared with compiling."""
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
    """The first model is called: the first step starts with what it allocates."""
    global _begun
    library = torch_frames.library()
    if not _begun and library is not None and not training.inside_loop():
        _begun = True
        library.vramscope_step_done(ctypes.c_int64(0))


def after_step() -> None:
    """Inspects module calls again if an unnamed module was found; stops after a few steps without one."""
    global _unnamed_seen, _quiet_steps, _all_named, _looks_left
    library = torch_frames.library()
    if library is None:
        return
    seen = library.vramscope_unnamed_layers()
    if seen != _unnamed_seen:
        _unnamed_seen, _quiet_steps = seen, 0
        if not _compiled:
            arm()
        elif _looks_left > 0:       # a hook would make the compiler start over
            _looks_left, _all_named = _looks_left - 1, False
            name_all_models()
    elif _handle is not None:
        _quiet_steps += 1       # several optimizers may step before the unnamed model is called again
        if _quiet_steps >= _QUIET_STEPS:
            disarm()
            emit.quietly(_name_the_uncalled)


_compiled = False


def _compile_begins(model: Any = None, *_: Any, **__: Any) -> None:
    """torch.compile: the model is known here, and from now on no hook of ours may interfere with the compiler."""
    global _compiled
    _compiled = True
    disarm()
    module = _module_behind(model)
    if module is not None and not _is_named(module):
        name_model(module)


def _module_behind(model: Any) -> Optional[Any]:
    for candidate in (model, getattr(model, "__self__", None)):     # a module, or one of its methods (Module.compile)
        if isinstance(candidate, _torch.nn.Module):
            return candidate
    return None
