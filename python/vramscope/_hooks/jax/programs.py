"""Programs that JAX compiles: their names and arguments are reported to the recorder, which follows their executions by itself."""
from __future__ import annotations

import re
import sys
from typing import Any, List, Tuple

from ..._schema import BEGIN, CATEGORIES, END, PHASE
from ... import _recorder
from .. import emit, lines, wrapping
from . import arguments, judging, keras_state, lowering, nnx_state, pmap_arguments, recompilations
from .arguments import Argument, Donation, Label
from .dataflow import Flow

_NAME = re.compile(r'loc\("([^"]*)"')
_ALIASED, _DONOR = "tf.aliasing_output", "jax.buffer_donor"      # a result takes its place; XLA may choose one


def install(compiler: Any) -> None:
    wrapping.wrap(compiler, "compile_or_get_cached", _compiling, _compiled_one)


def _text(attribute: Any) -> str:
    """MLIR's attributes are strings in some versions of jaxlib, and objects in others."""
    return str(getattr(attribute, "value", attribute)).strip('"')


def _main(module: Any) -> Any:
    return next(op for op in module.body.operations if _text(op.attributes["sym_name"]) == "main")


def _arguments_of(main: Any) -> Tuple[List[Argument], List[Donation]]:
    found, donated = [], []
    attributes = list(main.arg_attrs)
    for index, argument in enumerate(main.entry_block.arguments):
        name = _NAME.match(str(argument.location))
        found.append(Argument(name.group(1) if name else "", str(argument.type)))
        text = str(attributes[index])
        donated.append(Donation.ALIASED if _ALIASED in text else Donation.OFFERED if _DONOR in text else Donation.NONE)
    return found, donated


def _results_of(main: Any) -> List[Argument]:
    kinds = [str(kind) for kind in main.type.results]
    infos = [str(attribute) for attribute in main.result_attrs]
    names = [re.search(r'jax\.result_info = "([^"]*)"', info) for info in infos]
    return [Argument(name.group(1) if name else "", kind) for name, kind in zip(names, kinds)]


def _trains(module: Any) -> bool:
    """Gradients are computed by ops whose names say so: "transpose(jvp(f))"."""
    return "transpose(jvp(" in module.operation.get_asm(enable_debug_info=True)


class _Compilation:
    """What is known about a program before it is compiled: names and numbers."""

    __slots__ = ("name", "program")

    def __init__(self, name: str) -> None:
        self.name, self.program = name, None        # type: str, Optional[judging.Program]


def _compiling(backend: Any, computation: Any, *_: Any, **__: Any) -> _Compilation:
    one = _Compilation(_text(computation.operation.attributes["sym_name"]))
    emit.mark(PHASE, BEGIN, "compile", -1, one.name)
    emit.quietly(lambda: _describe(one, computation))
    return one


def _compiled_one(one: _Compilation, ok: bool, executable: Any, *_: Any, **__: Any) -> None:
    emit.mark(PHASE, END, "compile", -1, one.name)
    if ok:
        emit.quietly(lambda: judging.judge(one.name, lines.user_line(), one.program, executable))


def _describe(one: _Compilation, module: Any) -> None:
    recorder, name = _recorder.active(), one.name
    if recorder is None or recorder.jax_compiling is None:  # type: ignore[attr-defined]
        return
    main = _main(module)
    found, donated = _arguments_of(main)
    results = _results_of(main)
    pmap_arguments.apply(found)
    known = nnx_state.apply(found, results) if "flax.nnx" in sys.modules else {}
    trains, flow = _trains(module), Flow(module, main)
    labels = arguments.classify(found, results, donated, flow if trains else None) if trains or arguments.updates_state(found, results) else []
    labels = [known.get(argument.path, label) for argument, label in zip(found, labels)]
    named = list(found)
    keras_state.apply(named, labels)
    returned = arguments.label_results(found, named, labels, results, flow) if labels else []
    recorder.jax_compiling(name.encode(), int(trains), *_values([(argument.path, label) for argument, label in zip(named, labels)]),     # type: ignore[attr-defined]
                           *_values(returned))
    lowered = lowering.take(name, len(found))
    if lowered is not None:
        one.program = judging.Program(found, labels, results, donated, [flow.is_updated(index) for index in range(len(found))], lowered)
    recompilations.note(name, lowered.source if lowered is not None else "", found)


def _values(labelled: List[Tuple[str, Label]]) -> Tuple[Any, int]:
    values = [(name.encode(), label.layer and label.layer.encode(), CATEGORIES[label.category]) for name, label in labelled]
    return (_recorder.JaxValue * len(values))(*values), len(values)
