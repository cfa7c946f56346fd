"""JAX: what only Python knows about a run: names of programs, what their arguments are, and when they are compiled."""
from __future__ import annotations

from typing import Any

from .. import emit
from . import lowering, programs


def install(jax: Any) -> None:
    from jax._src import compiler
    from jax._src.interpreters import mlir
    lowering.install(mlir)
    programs.install(compiler)
    emit.at_first_event(lambda: emit.setting("jax.version", jax.__version__))
    emit.watching(b"jax")
