"""Which code objects of PyTorch have a meaning when they are on the stack of an allocation."""
from __future__ import annotations

import ctypes
import sys
from types import CodeType
from typing import Any, Callable, List, Optional, Tuple

from .. import _recorder

LAYER_CALL, PHASE, RECOMPUTE, OP = range(1, 5)
INPUT, FORWARD, BACKWARD, OPTIMIZER, SAVE, COMPILE, CHECKPOINTED = range(1, 8)

_kept: List[CodeType] = []      # the recorder knows their addresses, so they must not be freed


library_loaded: Optional[Any] = None     # the last result of library(), for calls in every step


def library() -> Optional[Any]:
    """The functions of include/vramscope/labels.h; None if the recorder in this process does not have them."""
    global library_loaded
    if library_loaded is None and _recorder.loaded() is not None:
        program = ctypes.PyDLL(None)
        if hasattr(program, "vramscope_watch_code"):
            program.vramscope_unnamed_layers.restype = ctypes.c_uint64
            library_loaded = program
    return library_loaded


def code_of(function: Any) -> Optional[CodeType]:
    """The code object of a function, of a method, or of what functools.wraps returned for one."""
    function = getattr(function, "__func__", function)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return getattr(function, "__code__", None)


def inner_code(function: Any, name: str) -> Optional[CodeType]:
    """The code of a function that is defined inside another one; all its closures share it."""
    outer = code_of(function)
    for constant in outer.co_consts if outer is not None else ():
        if isinstance(constant, CodeType) and constant.co_name == name:
            return constant
    return None


def watch(code: Optional[CodeType], role: int, phase: int = 0, text: str = "") -> bool:
    recorder = library()
    if code is None or recorder is None:
        return False
    first = code.co_varnames[0] if code.co_argcount else ""
    in_cell = role == LAYER_CALL and first in code.co_cellvars
    slot = 0
    if in_cell and sys.version_info < (3, 11):
        slot = code.co_nlocals + code.co_cellvars.index(first)
    _kept.append(code)
    return recorder.vramscope_watch_code(ctypes.c_uint64(id(code)), role, phase, slot, int(in_cell), text.encode()) == 1


def _find(root: Any, path: str) -> Any:
    for name in path.split("."):
        root = getattr(root, name, None)
        if root is None:
            return None
    return root


# (where, role, phase, text). Entries that a version does not have are skipped.
_FUNCTIONS: Tuple[Tuple[str, int, int, str], ...] = (
    ("autograd.backward", PHASE, BACKWARD, ""),
    ("autograd.grad", PHASE, BACKWARD, ""),
    ("autograd.graph._engine_run_backward", PHASE, BACKWARD, ""),
    ("optim.Optimizer.zero_grad", PHASE, OPTIMIZER, ""),
    ("utils.data.dataloader._BaseDataLoaderIter.__next__", PHASE, INPUT, ""),
    ("utils.data._utils.pin_memory.pin_memory", PHASE, INPUT, ""),
    ("utils.data._utils.collate.default_collate", PHASE, INPUT, ""),
    ("serialization.save", PHASE, SAVE, ""),
)
_INNER: Tuple[Tuple[str, str, int, int, str], ...] = (
    ("optim.Optimizer.profile_hook_step", "wrapper", PHASE, OPTIMIZER, ""),
)


def watch_all(torch: Any) -> None:
    module = torch.nn.Module
    call: Callable[..., Any] = getattr(module, "_wrapped_call_impl", None) or module._call_impl
    if not watch(code_of(call), LAYER_CALL):
        return
    for path, role, phase, text in _FUNCTIONS:
        watch(code_of(_find(torch, path)), role, phase, text)
    for path, name, role, phase, text in _INNER:
        watch(inner_code(_find(torch, path), name), role, phase, text)
    _check_the_walker()


def watch_checkpoint(checkpoint: Any) -> None:
    """torch.utils.checkpoint: part of torch itself since 2.0; before that, imported only when used."""
    watch(code_of(_find(checkpoint, "CheckpointFunction.forward")), PHASE, CHECKPOINTED)
    watch(code_of(_find(checkpoint, "CheckpointFunction.backward")), RECOMPUTE, 0, "recomputation")
    for path, name in (("_checkpoint_hook.__init__", "unpack_hook"), ("_checkpoint_without_reentrant", "unpack")):
        watch(inner_code(_find(checkpoint, path), name), RECOMPUTE, 0, "recomputation")


def watch_compile(convert_frame: Any) -> None:
    """torch._dynamo.convert_frame: everything below its compile function is the compiler."""
    watch(code_of(getattr(convert_frame, "_compile", None)), PHASE, COMPILE)


def watch_ddp(distributed: Any) -> None:
    """torch.nn.parallel.distributed: the buckets are created when a model is wrapped, and again before the second forward pass."""
    watch(code_of(_find(distributed, "DistributedDataParallel.__init__")), OP, 0, "DDP buckets")
    watch(code_of(_find(distributed, "DistributedDataParallel._pre_forward")), OP, 0, "DDP buckets")
    # What else happens there, and is not a bucket.
    watch(code_of(_find(distributed, "DistributedDataParallel._sync_buffers")), OP, 0, "DDP broadcast")
    for name in ("_to_kwargs", "_cast_forward_inputs"):
        watch(code_of(_find(distributed, name)), OP, 0, "DDP inputs")


def watch_fsdp(group: Any) -> None:
    """torch.distributed.fsdp._fully_shard._fsdp_param_group"""
    for name, text in (("unshard", "FSDP all-gather"), ("wait_for_unshard", "FSDP all-gather"), ("post_backward", "FSDP reduce-scatter")):
        watch(code_of(_find(group, f"FSDPParamGroup.{name}")), OP, 0, text)


def _check_the_walker() -> None:
    """Compares this stack as Python sees it with what the recorder reads: on a mismatch, the recorder stops reading stacks and
    reports it."""
    recorder = library()
    if recorder is None:
        return
    codes, lines = [], []
    walk: Any = sys._getframe()         # no variable may keep this frame when the function ends: it would keep all frames around it
    while walk is not None:
        codes.append(id(walk.f_code))
        lines.append(walk.f_lineno or 0)
        walk = walk.f_back
    count = len(codes)
    recorder.vramscope_verify_stack((ctypes.c_uint64 * count)(*codes), (ctypes.c_uint32 * count)(*lines), ctypes.c_size_t(count))
