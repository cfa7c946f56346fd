"""What a program under test says about its own blocks while it is recorded.

A claim is (number of a mark, address, category): the block that lives at the address where the mark stands in the trace is of that category,
for all its life. The marks go into the trace, so that a claim needs no clock.
"""
import json
import os

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

    def write(self):
        with open(os.environ["VRAMSCOPE_TEST_CLAIMS"], "w") as file:
            json.dump({"claims": self._claims, "windows": self._windows, **self.facts}, file)


class _Window:
    def __init__(self, claims, name):
        self._claims, self._name, self._begin = claims, name, 0

    def __enter__(self):
        self._begin = self._claims.mark()

    def __exit__(self, *_):
        self._claims.add_window(self._name, self._begin, self._claims.mark())
