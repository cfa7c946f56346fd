"""Keras on JAX: the arguments of its programs are lists of variables, `state[0][3]`. Which variable that is, its model knows."""
from __future__ import annotations

import re
from typing import Any, List, Sequence, Tuple

from .. import emit, keras_variables, wrapping
from .arguments import Argument, Label

_PLACE = re.compile(r"state\[(\d+)\]\[(\d+)\]$")
_LISTS = (("trainable_variables", "parameter"), ("non_trainable_variables", "buffer"), ("optimizer_variables", "optimizer_state"),
          ("metrics_variables", "buffer"))
_lists: List[List[Tuple[str, Label]]] = []      # of the state that was last put together: name and label of each variable


def install(trainer: Any) -> None:
    wrapping.wrap(trainer, "_get_jax_state", _putting_together)


def _putting_together(model: Any, **wanted: Any) -> None:
    if wanted.get("trainable_variables"):
        emit.quietly(lambda: _note(model, wanted))


def _note(model: Any, wanted: Any) -> None:
    known = keras_variables.describe()
    _lists[:] = [[_named(variable, category, known) for variable in _variables(model, attribute)]
                 for attribute, category in _LISTS if wanted.get(attribute)]


def _variables(model: Any, attribute: str) -> Sequence[Any]:
    return model.optimizer.variables if attribute == "optimizer_variables" else getattr(model, attribute)


def _named(variable: Any, category: str, known: Any) -> Tuple[str, Label]:
    meaning = next((known[id(one)] for one in keras_variables.raw(variable) if id(one) in known), None)
    if meaning is None:
        return variable.path, Label(category, None)
    return meaning.name, Label(meaning.category, meaning.layer or None)


def apply(arguments: List[Argument], labels: List[Label]) -> None:
    """Replaces what the paths alone say."""
    for index, argument in enumerate(arguments[:len(labels)]):
        place = _PLACE.match(argument.path)
        group, number = (int(part) for part in place.groups()) if place else (0, 0)
        if place and group < len(_lists) and number < len(_lists[group]):
            name, labels[index] = _lists[group][number]
            arguments[index] = Argument(name, argument.kind)
