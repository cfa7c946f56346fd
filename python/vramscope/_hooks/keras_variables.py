"""Which variable belongs to which layer, according to Keras' own structure; the names are those of `model.summary()`."""
from __future__ import annotations

import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from . import layers, lines, training

_models: List["weakref.ref[Any]"] = []
_loose: List["weakref.ref[Any]"] = []        # layers that may be used without a model
_optimizers: List["weakref.ref[Any]"] = []
_metrics: List["weakref.ref[Any]"] = []


class Meaning(NamedTuple):
    category: str
    name: str
    layer: str
    built: Optional[lines.Line] = None       # where the layer was created


_made = _named = 0              # models: all so far, and those when the models inside models were named last


def track(layer: Any, is_model: bool) -> None:
    global _made
    _made += is_model
    (_models if is_model else _loose).append(weakref.ref(layer))
    training.structure_changed()


def track_optimizer(optimizer: Any) -> None:
    _optimizers.append(weakref.ref(optimizer))


def track_metric(metric: Any) -> None:
    _metrics.append(weakref.ref(metric))


def counting(variable: Any) -> Any:
    """The optimizer that counts its updates in this variable, or None."""
    for optimizer in _alive(_optimizers):
        iterations = getattr(optimizer, "_iterations", None)      # with accumulated gradients, the property is computed
        if iterations is not None and any(one is variable for one in raw(iterations)):
            return optimizer
    return None


def known() -> Set[int]:
    """Ids of everything that is tracked."""
    return {id(thing) for references in (_models, _loose, _optimizers, _metrics) for thing in _alive(references)}


def _alive(references: List["weakref.ref[Any]"]) -> List[Any]:
    found = [(reference, reference()) for reference in references]
    references[:] = [reference for reference, thing in found if thing is not None]
    return [thing for _, thing in found if thing is not None]


def _children(layer: Any) -> List[Any]:
    return list(layer._flatten_layers(include_self=False, recursive=False))


# What a layer made to be trained stays a parameter where it is frozen; moving averages and seeds never are.
_LISTS = (("_trainable_variables", "parameter"), ("_trainable_weights", "parameter"), ("_non_trainable_variables", "buffer"),
          ("_non_trainable_weights", "buffer"))


def _own_variables(layer: Any) -> Iterator[Tuple[Any, str]]:
    """Each with its category."""
    for attribute, category in _LISTS:
        for variable in layer.__dict__.get(attribute) or ():
            yield variable, category
    for generator in layer.__dict__.get("_seed_generators") or ():
        yield generator.state, "buffer"


def raw(variable: Any) -> List[Any]:
    """The framework's own variables behind a Keras variable: one, or one per replica."""
    variable = getattr(variable, "_value", variable) if hasattr(variable, "path") else variable
    return list(getattr(variable, "_values", None) or [variable])


def _replicas(variable: Any, meaning: Meaning) -> Iterator[Tuple[int, Meaning]]:
    """Each of the framework's own variables with its name; a copy on another device is called replica_1, as in TensorFlow."""
    for i, one in enumerate(raw(variable)):
        yield id(one), meaning._replace(name=f"{meaning.name}/replica_{i}") if i else meaning


_COUNTERS = ("_train_counter", "_test_counter", "_predict_counter")      # of a model in Keras 2, not one of its variables


def _walk(layer: Any, path: str, seen: Set[int], out: Dict[int, Meaning]) -> None:
    if id(layer) in seen:
        return
    seen.add(id(layer))
    for variable, category in _own_variables(layer):
        name = f"{path}/{variable.name.split('/')[-1].split(':')[0]}" if path else variable.name
        out.update(_replicas(variable, Meaning(category, name, path, layers.built(layer))))
    for name in _COUNTERS:
        counter = layer.__dict__.get(name)
        if hasattr(counter, "assign_add"):
            out.update(_replicas(counter, Meaning("workspace", name.strip("_"), layers.LOSS)))
    for child in _children(layer):
        _walk(child, f"{path}/{child.name}" if path else child.name, seen, out)


def _trained(optimizer: Any, models: List[Any]) -> List[Any]:
    """The variables that an optimizer trains, in the order of its slots."""
    index = getattr(optimizer, "_index_dict", None)
    if index is None:
        return list(getattr(optimizer, "_trainable_variables", None) or ())
    # Keras 2 stores only their keys.
    by_key = {optimizer._var_key(variable): variable for model in models for variable in model.trainable_variables}
    return [by_key.get(key) for key in sorted(index, key=index.__getitem__)]


def _slots(optimizer: Any, trained: List[Any], parameters: Dict[int, Meaning], out: Dict[int, Meaning]) -> None:
    owner: Dict[int, Meaning] = {}
    # Every optimizer stores its slots in lists parallel to the variables it trains.
    for value in vars(optimizer).values():
        if isinstance(value, (list, tuple)) and trained and len(value) == len(trained) and value is not trained:
            for slot, variable in zip(value, trained):
                meaning = parameters.get(id(raw(variable)[0])) if variable is not None else None
                if meaning is not None and slot is not None and slot is not variable:
                    owner.setdefault(id(slot), meaning)
    variables = getattr(optimizer, "variables", ())
    for slot in (variables() if callable(variables) else variables):
        meaning = owner.get(id(slot))
        name = getattr(slot, "path", slot.name)
        for one, said in _replicas(slot, Meaning("optimizer_state", name, meaning.layer if meaning else layers.OPTIMIZER)):
            out.setdefault(one, said)


def _outermost(models: List[Any]) -> List[Any]:
    """Those that no other model contains. The largest first: a Sequential keeps a model of the same layers beside itself, which nothing contains."""
    below = {id(model): list(model._flatten_layers(include_self=False)) for model in models}
    inner = {id(child) for children in below.values() for child in children}
    return sorted((model for model in models if id(model) not in inner), key=lambda model: -len(below[id(model)]))


def name_inner_models(model_type: type) -> None:
    global _named
    if _named != _made:
        _named = _made
        for model in _outermost(_alive(_models)):
            layers.name_models_in(model, model_type)


def describe() -> Dict[int, Meaning]:
    """id of each of the framework's variables -> its description."""
    out: Dict[int, Meaning] = {}
    metrics = _alive(_metrics)
    seen: Set[int] = {id(metric) for metric in metrics}         # in Keras 2, they are also layers
    models = _alive(_models)
    for model in _outermost(models):
        _walk(model, "", seen, out)
    loose = _alive(_loose)
    for layer in loose:
        # A layer that was only a pattern for others (Bidirectional makes two of it) has nothing but a seed, until it is collected.
        if getattr(layer, "built", True) or layer.weights:
            _walk(layer, layer.name, seen, out)
    parameters = dict(out)
    for optimizer in _alive(_optimizers):
        _slots(optimizer, _trained(optimizer, models + loose), parameters, out)
    # The counters of a metric are not weights of the model.
    for metric in metrics:
        for variable in getattr(metric, "variables", ()):
            name = f"{metric.name}/{variable.name.split('/')[-1].split(':')[0]}"
            for one, said in _replicas(variable, Meaning("workspace", name, layers.LOSS)):
                out.setdefault(one, said)
    return out
