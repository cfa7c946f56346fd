"""What only the callers of the compiler know: the variables of their frames. Read when a program is compiled, not when it runs."""
from __future__ import annotations

import os
import sys
from typing import Any, Dict


def variables(file: str, *names: str) -> Dict[str, Any]:
    """Of the innermost frame in a file with this in its path that has these variables; empty if there is none."""
    file = file.replace("/", os.sep)
    frame = sys._getframe(1)
    while frame is not None:        # type: ignore[redundant-expr]
        code = frame.f_code
        if file in code.co_filename and set(names) <= {*code.co_varnames, *code.co_freevars}:
            return frame.f_locals
        frame = frame.f_back  # type: ignore[assignment]
    return {}
