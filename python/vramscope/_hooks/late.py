"""Start-up where a framework takes its first memory and nobody watches it: Python ran no sitecustomize (`-S`), or the framework was
imported in a way of its own. The recorder calls this between two instructions of the main thread. What the program has made until then is
found among the interpreter's objects.
"""
import os
import runpy
import sys

if hasattr(sys, "_vramscope_startup"):
    sys.modules["vramscope._hooks.importing"].watch()
else:
    _package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    runpy.run_path(os.path.join(_package, "_startup", "sitecustomize.py"), run_name="vramscope_late")

from vramscope._hooks import adopt  # noqa: E402  (found by what has just been put in place)

adopt.what_exists()
