"""The user's line around each of thousands of ops, without walking the whole stack for each.

Under fit(), an op of a graph is created a hundred frames and more below the user's code. Calls that create many ops (tracing a function, calling a
layer, differentiating, updating variables) put an anchor at the frame that makes them. Walks that reach an anchor go on where the first one
found the next user's frame or the next anchor. While the call runs, none of that can change. Frames are never kept, only their addresses.
"""
from __future__ import annotations

from types import FrameType
from typing import Dict, NamedTuple, Optional, Tuple

from . import lines


class Place(NamedTuple):
    line: lines.Line
    frame: int                  # its address, valid while it runs


_Segment = Tuple[Optional[Place], int]          # the user's place before the next anchor, or that anchor; 0: there is none
_UNKNOWN: _Segment = (None, -1)
_anchors: Dict[int, _Segment] = {}              # by the address of a running frame


def anchor(frame: FrameType) -> int:
    """The frame makes a call now that ends with release(). 0: it has an anchor already."""
    address = id(frame)
    if address in _anchors:
        return 0
    lines.is_user(frame.f_code, frame.f_lineno)         # decided now, so that the code stays out of the plain ones
    lines.plain_codes.discard(id(frame.f_code))
    _anchors[address] = _UNKNOWN
    return address


def release(address: int) -> None:
    _anchors.pop(address, None)


def user_place(frame: FrameType, stop: int = 0) -> Optional[Place]:
    """Searches from `frame` outward, as lines.user_frame() does."""
    if stop and stop not in _anchors:
        found = lines.user_frame(frame, stop)
        return None if found is None else Place(lines.of_frame(found), id(found))
    place, address = _from(frame)
    while place is None and address and address != stop:
        segment = _anchors[address]
        if segment is _UNKNOWN:
            while id(frame) != address:
                frame = frame.f_back  # type: ignore[assignment]
            segment = _anchors[address] = _from(frame, beyond=address)
        place, address = segment
    return place


def _from(frame: Optional[FrameType], beyond: int = 0) -> _Segment:
    """To the next user's frame, or to the next anchor but `beyond`."""
    plain, anchors = lines.plain_codes, _anchors
    while frame is not None:
        code = frame.f_code
        if id(code) not in plain:
            address = id(frame)
            if address in anchors and address != beyond:
                return None, address
            if lines.is_user(code, frame.f_lineno):
                return Place(lines.of_frame(frame), address), 0
        frame = frame.f_back
    return None, 0
