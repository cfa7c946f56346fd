"""Late attach: finds what was created before the hooks were installed among the interpreter's objects."""
from __future__ import annotations

import sys
from importlib import import_module

from . import importing


def what_exists() -> None:
    """Each framework that is already imported finds its own objects."""
    for framework in importing.FRAMEWORKS:
        if "ADOPT" in framework and framework["MODULE"] in sys.modules:
            import_module(framework["ADOPT"]).what_exists()
