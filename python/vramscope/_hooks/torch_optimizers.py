"""Steps, gradients and optimizer state: one call before and one after each optimizer step."""
from __future__ import annotations

import ctypes
import itertools
import sys
import weakref
from typing import Any, Dict, List, Optional, Tuple

from . import emit, torch_frames, torch_names, torch_ranks, torch_tags, training, wrapping

_TAG_STATE_AT = (1, 2, 3, 10, 100, 1000)        # state is created in the first steps and stays; later checks find what moved


class _Known:
    """What is known about one optimizer."""

    def __init__(self, optimizer: Any) -> None:
        self.steps = 0
        self.states = 0         # parameters that the optimizer keeps state for
        self.parameters = 0
        self.naming = -1        # torch_names.naming when the names were looked up
        self.gradients: Optional[torch_tags.Gradients] = None
        self.names: Dict[int, Tuple[str, str]] = {}
        self.ends: List["weakref.ref[Any]"] = []        # the first and the last parameter
        self.places: List[int] = []                     # and where they were when everything was tagged

    def has_moved(self) -> bool:
        """Whether `parameter.data = ...` or `model.double()` gave the parameters other blocks. If so, it did so to all of them."""
        places = [0 if parameter is None else torch_tags.place(parameter)[0] for parameter in (end() for end in self.ends)]
        moved, self.places = places != self.places, places
        return moved

    def refresh(self, optimizer: Any) -> None:
        """Looks up the parameters again if some were added (unfreezing) or renamed."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if self.gradients is not None and len(parameters) == self.parameters and self.naming == torch_names.naming:
            return
        self.parameters, self.naming = len(parameters), torch_names.naming
        names: List[Tuple[str, str]] = [
            torch_names.name_of(p) or (f"parameter {i}", "") for i, p in enumerate(parameters)]
        self.names = {id(p): name for p, name in zip(parameters, names)}
        self.gradients = torch_tags.Gradients(parameters, names)
        self.ends = [weakref.ref(parameter) for parameter in (parameters[:1] + parameters[-1:])]


_known: "weakref.WeakKeyDictionary[Any, _Known]" = weakref.WeakKeyDictionary()
_steps = itertools.count(1)


class _Iterations:
    """Decides which optimizer's steps are the program's steps. If several take turns (a GAN, one per part of a model), an
    iteration ends with the last of them, which is known once the first one comes around again."""

    _ALONE = 10     # steps of one optimizer without a step of the main one: the program now trains something else

    def __init__(self) -> None:
        self._main: Optional["weakref.ref[Any]"] = None
        self._last: Optional["weakref.ref[Any]"] = None     # optimizers that stepped since the main one did
        self._since: Dict[int, int] = {}                    # by optimizer: how often since then
        self._turns_known = False

    def end_with(self, optimizer: Any) -> bool:
        """Whether this step of this optimizer ends an iteration."""
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
    wrapping.wrap(optimizer.Optimizer, "__init__", after=_when_made)
    if not _handles and hasattr(optimizer, "register_optimizer_step_pre_hook"):      # 2.0
        _handles.append(optimizer.register_optimizer_step_pre_hook(_before))
        _handles.append(optimizer.register_optimizer_step_post_hook(_after))
    elif hasattr(optimizer.Optimizer, "_hook_for_profile"):     # 1.13: the step of each class is wrapped when an instance is created
        wrapping.wrap(optimizer.Optimizer, "_hook_for_profile", after=_before_2_0)


def _when_made(token: None, ok: bool, result: None, optimizer: Any, *_: Any, **__: Any) -> None:
    torch_names.expect_model()


def _before_2_0(token: None, ok: bool, result: None, optimizer: Any) -> None:
    step = vars(type(optimizer)).get("step")
    if wrapping.wrap(type(optimizer), "step", lambda self, *_, **__: _before(self, None, None), _after_step):
        torch_frames.watch(torch_frames.code_of(step), torch_frames.PHASE, torch_frames.OPTIMIZER)


def _after_step(token: None, ok: bool, result: Any, optimizer: Any, *_: Any, **__: Any) -> None:
    if ok:
        _after(optimizer, None, None)


def remove() -> None:
    """Removes the hooks, so that optimizer steps cost nothing extra."""
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
        emit.quietly(torch_ranks.first_step)
    states = len(optimizer.state)
    moved = known.has_moved()
    if moved or known.steps in _TAG_STATE_AT or states != known.states:
        known.states = states
        tag_state(optimizer, known.names)
        torch_names.tag_buffers()
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
