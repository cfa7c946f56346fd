"""Small programs with one known trouble, or none. Each states what is so; `test_troubles.py` asks the recording.

A program may return the names of its model's layers, as the framework itself lists them. A module of programs ends with `corpus.run_all()`. The framework is imported once, and each program runs in a child made by fork, which has a trace
of its own: an import takes longer than most of the programs.
"""
import inspect
import json
import os
import re
import sys
import traceback

MIB = 1 << 20
_programs = []


def program(kind, finds=(), says="", saving=0, also=(), steps=None, environment=None, fixed=None):
    """`kind`: which trouble, for the score. `finds`: one of these findings must come first; nothing: no trouble is to be reported. `says`: what its
    text must match; LINE is the line that ends with "# the defect". `saving`: the bytes that are at stake. `also`: further findings that are
    true. `steps`: how many training steps there are. `fixed`: the same program after the remedy, whose peak is lower by what is at stake."""

    def register(function):
        source, first = inspect.getsourcelines(function)
        line = next((first + i for i, text in enumerate(source) if "# the defect" in text), 0)
        _programs.append((function, environment or {}, {
            "name": function.__name__, "kind": kind, "finds": [finds] if isinstance(finds, str) else list(finds),
            "says": says.replace("LINE", rf"{re.escape(os.path.basename(function.__code__.co_filename))}:{line}"), "saving": saving, "also": list(also),
            "steps": steps, "fixes": ""}))
        if fixed is not None:
            _programs.append((fixed, environment or {}, {"name": function.__name__ + " (fixed)", "fixes": function.__name__}))
        return function

    return register


def run_all(first=None):
    """Runs the programs that the command line names, or all of them; `first` is called before each. A line about each: its process, how it ended, what
    is so."""
    chosen = sys.argv[1:]
    for function, environment, meant in _programs:
        if chosen and meant["name"] not in chosen and meant["fixes"] not in chosen:
            continue
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.environ.update(environment)
            code = 0
            try:
                if first is not None:
                    first()
                layers = function()
                if layers:
                    print(json.dumps({"program": meant["name"], "layers": list(layers)}), flush=True)
            except Exception as error:  # noqa: BLE001 - a program may end with one; the parent reports it
                if meant.get("finds") != ["oom"]:
                    traceback.print_exc()
                print(f"{meant['name']}: {type(error).__name__}", file=sys.stderr)
                code = 3
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"pid": child, "code": os.waitstatus_to_exitcode(status), **meant}), flush=True)
