"""What a program under test says about its own blocks while it is recorded.

A claim is (number of a mark, address, category): the block that lives at the address where the mark stands in the trace is of that category,
for all its life. The marks go into the trace, so that a claim needs no clock.

`run_each` runs several programs with one import of the framework: each in a child made by fork, which has a trace and a file of claims of its own.
"""
import json
import os
import re
import sys
import traceback

import vramscope


class Claims:
    def __init__(self):
        self._claims, self._windows, self._marks = [], [], 0
        self.facts = {}

    def mark(self):
        self._marks += 1
        vramscope.mark("oracle", number=self._marks)
        return self._marks

    def claim(self, category, *addresses):
        """`addresses` live now."""
        addresses = [address for address in addresses if address]
        if addresses:
            at = self.mark()
            self._claims += [(at, address, category) for address in addresses]

    def window(self, name):
        """`with claims.window("backward"):` which pass the program is in."""
        return _Window(self, name)

    def add_window(self, name, begin, end):
        self._windows.append((name, begin, end))

    def write(self, name):
        with open(os.path.join(os.environ["VRAMSCOPE_TEST_CLAIMS"], f"{name}.json"), "w") as file:
            json.dump({"claims": self._claims, "windows": self._windows, **self.facts}, file)


class _Window:
    def __init__(self, claims, name):
        self._claims, self._name, self._begin = claims, name, 0

    def __enter__(self):
        self._begin = self._claims.mark()

    def __exit__(self, *_):
        self._claims.add_window(self._name, self._begin, self._claims.mark())


def run_each(names, program):
    """program(name) -> its claims. Prints a line about each: its name and its process."""
    for name in names:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            # XLA numbers its plans from 0 in each process.
            os.environ["XLA_FLAGS"] = re.sub(r"(--xla_dump_to=\S+)", rf"\1/{name}", os.environ.get("XLA_FLAGS", ""))
            code = 1
            try:
                program(name).write(name)
                code = 0
            except Exception:  # noqa: BLE001 - the parent reports it
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"name": name, "pid": child, "code": os.waitstatus_to_exitcode(status)}), flush=True)
