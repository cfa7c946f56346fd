"""Steps, gradients and optimizer state: one call before and one after each optimizer step."""
from __future__ import annotations

import ctypes
import itertools
import sys
import weakref
from typing import Any, Dict, List, Optional, Tuple

from . import emit, ranks, torch_frames, torch_names, torch_tags, training, wrapping

_TAG_STATE_AT = (1, 2, 3, 10, 100, 1000)        # state is made in the first steps and stays; later looks find what moved


class _Known:
    """What is kept about one optimizer."""

    def __init__(self, optimizer: Any) -> None:
        self.steps = 0
        self.states = 0         # parameters that the optimizer keeps something for
        self.parameters = 0
        self.naming = -1        # torch_names.naming when the names were looked up
        self.gradients: Optional[torch_tags.Gradients] = None
        self.names: Dict[int, Tuple[str, str]] = {}

    def refresh(self, optimizer: Any) -> None:
        """Anew where parameters were added (unfreezing), or got other names."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if self.gradients is not None and len(parameters) == self.parameters and self.naming == torch_names.naming:
            return
        self.parameters, self.naming = len(parameters), torch_names.naming
        names: List[Tuple[str, str]] = [
            torch_names.name_of(p) or (f"parameter {i}", "") for i, p in enumerate(parameters)]
        self.names = {id(p): name for p, name in zip(parameters, names)}
        self.gradients = torch_tags.Gradients(parameters, names)


_known: "weakref.WeakKeyDictionary[Any, _Known]" = weakref.WeakKeyDictionary()
_steps = itertools.count(1)


class _Iterations:
    """Which optimizer's steps are the program's. Where several take turns (a GAN, one for each part of a model) an iteration ends with
    the last of them: that one is known when the first comes round again."""

    _ALONE = 10     # steps of one optimizer, none of the main one between them: the program trains something else now

    def __init__(self) -> None:
        self._main: Optional["weakref.ref[Any]"] = None
        self._last: Optional["weakref.ref[Any]"] = None     # stepped since the main one did
        self._since: Dict[int, int] = {}                    # by optimizer: how often since then
        self._turns_known = False

    def end_with(self, optimizer: Any) -> bool:
        """Does this step of this optimizer end an iteration?"""
        main = self._main() if self._main is not None else None
        if main is None:
            self._follow(weakref.ref(optimizer), False)
            return True
        if main is optimizer:
            last = self._last
            if last is not None and last() is not None and not self._turns_known:
                self._follow(last, True)
                return False
            self._last, self._since = None, {}
            return True
        self._last = weakref.ref(optimizer)
        times = self._since[id(optimizer)] = self._since.get(id(optimizer), 0) + 1
        if times > self._ALONE:
            self._follow(self._last, False)
            return True
        return False

    def _follow(self, main: "weakref.ref[Any]", turns_known: bool) -> None:
        self._main, self._turns_known = main, turns_known
        self._last, self._since = None, {}


_iterations = _Iterations()


_handles: List[Any] = []


def install(torch: Any) -> None:
    optimizer = sys.modules["torch.optim.optimizer"]        # torch.optim hides it
    wrapping.wrap(optimizer.Optimizer, "__init__", _when_made)
    if not _handles and hasattr(optimizer, "register_optimizer_step_pre_hook"):      # 2.0
        _handles.append(optimizer.register_optimizer_step_pre_hook(_before))
        _handles.append(optimizer.register_optimizer_step_post_hook(_after))
    elif hasattr(optimizer.Optimizer, "_hook_for_profile"):     # 1.13: each class's step is wrapped when one is made
        wrapping.wrap(optimizer.Optimizer, "_hook_for_profile", _before_2_0)


def _when_made(original: Any) -> Any:
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        torch_names.expect_model()
    return __init__


def _before_2_0(original: Any) -> Any:
    def make(step_of_class: Any) -> Any:
        def step(self: Any, *args: Any, **options: Any) -> Any:
            _before(self, args, options)
            result = step_of_class(self, *args, **options)
            _after(self, args, options)
            return result
        torch_frames.watch(step.__code__, torch_frames.PHASE, torch_frames.OPTIMIZER)
        return step

    def _hook_for_profile(self: Any) -> None:
        original(self)
        emit.quietly(lambda: wrapping.wrap(type(self), "step", make))
    return _hook_for_profile


def remove() -> None:
    """Optimizer steps cost what they cost without us."""
    while _handles:
        _handles.pop().remove()


def _compiling() -> bool:
    return torch_names._compiling()


def _before(optimizer: Any, args: Any, kwargs: Any) -> None:
    if not _compiling():
        emit.quietly(lambda: _tag_gradients(optimizer))


def _after(optimizer: Any, args: Any, kwargs: Any) -> None:
    if not _compiling():
        emit.quietly(lambda: _step_done(optimizer))


def _tag_gradients(optimizer: Any) -> None:
    known = _known.get(optimizer)
    if known is None:
        known = _known[optimizer] = _Known(optimizer)
    known.refresh(optimizer)
    if known.gradients is not None:
        known.gradients.tag()


def _step_done(optimizer: Any) -> None:
    known = _known.get(optimizer)
    if known is None:
        return
    known.steps += 1
    if known.steps == 1:
        emit.quietly(ranks.tell_at_first_step)
    states = len(optimizer.state)
    if known.steps in _TAG_STATE_AT or states != known.states:
        known.states = states
        tag_state(optimizer, known.names)
    if _iterations.end_with(optimizer) and not training.inside_loop():
        library = torch_frames.library_loaded
        if library is not None:
            library.vramscope_step_done(ctypes.c_int64(next(_steps)))
    torch_names.after_step()


def tag_state(optimizer: Any, names: Dict[int, Tuple[str, str]]) -> None:
    torch_tags.tag_tensors(torch_tags.state_of(optimizer, names), "optimizer_state")
    parameters = [(names.get(id(p), ("", ""))[0] or "parameter", names.get(id(p), ("", ""))[1], p)
                  for group in optimizer.param_groups for p in group["params"]]
    torch_tags.tag_tensors(parameters, "parameter")
