"""The user's line around an op: with anchors the same as by walking the whole stack, and in fewer frames."""
import sys

import pytest

from vramscope._hooks import lines, walking

FRAMEWORK = "/usr/lib/python3/site-packages/tensorflow/python/ops.py"
# A framework that calls itself `depth` times and then what it is given; every `anchors`-th call is one that creates many ops.
SOURCE = """
def down(depth, then, every, anchor, release):
    if depth == 0:
        return then()
    address = anchor(depth) if every and depth % every == 0 else 0
    try:
        return down(depth - 1, then, every, anchor, release)
    finally:
        release(address)
"""


@pytest.fixture
def framework():
    names = {}
    exec(compile(SOURCE, FRAMEWORK, "exec"), names)
    frames = []

    def anchor(depth):
        frames.append(id(sys._getframe(1)))
        return walking.anchor(sys._getframe(1))

    def down(depth, then, every=0):
        return names["down"](depth, then, every, anchor, walking.release)

    down.frames = frames
    yield down
    assert not walking._anchors, "all of them are released"


def both(stop=0):
    """(by walking everything, with anchors), from the framework's frame that calls this."""
    frame = sys._getframe(1)
    everything = lines.user_frame(frame, stop)
    place = walking.user_place(frame, stop)
    return (None if everything is None else (lines.of_frame(everything), id(everything))), (None if place is None else tuple(place))


@pytest.mark.parametrize("every", [0, 1, 3, 7])
def test_it_is_the_line_that_the_whole_stack_has(framework, every):
    found, names = [], {"both": both}
    exec(compile("def look():\n    found.append(both())", FRAMEWORK, "exec"), names)
    names["found"] = found

    def users_callback():
        framework(5, names["look"], every)

    framework(40, names["look"], every)
    framework(40, names["look"], every)
    framework(30, users_callback, every)        # the user's code inside the framework's
    assert len(found) == 3 and all(one == other for one, other in found)
    assert {one[0].file for one, _ in found} == {__file__} and found[0][0][1] != found[2][0][1]


@pytest.mark.parametrize("walked_before", [False, True])
def test_it_stops_where_it_is_told_to(framework, walked_before):
    found = []
    if walked_before:
        warm = {"both": both}
        exec(compile("def look():\n    both()", FRAMEWORK, "exec"), warm)
        framework(12, warm["look"])
    names = {"found": found, "both": both, "frames": framework.frames}
    exec(compile("def look():\n    found.append(both(frames[-2]))", FRAMEWORK, "exec"), names)
    framework(12, names["look"], 3)
    assert found == [(None, None)]


def test_later_walks_are_short(framework, monkeypatch):
    """Counted in frames whose code is looked up."""
    looked = []

    class Codes(set):
        def __contains__(self, key):
            looked.append(key)
            return set.__contains__(self, key)

    monkeypatch.setattr(lines, "plain_codes", Codes(lines.plain_codes))
    counts = []

    def look_twice():
        for _ in range(2):
            looked.clear()
            walking.user_place(inside)
            counts.append(len(looked))

    names = {"look_twice": look_twice}
    exec(compile("def look():\n    begin()\n    look_twice()", FRAMEWORK, "exec"), names)
    inside = None

    def begin():
        nonlocal inside
        inside = sys._getframe(1)

    names["begin"] = begin
    framework(200, names["look"], 10)
    inside = None
    assert counts[0] > 200 and counts[1] < 20, counts
