"""Sizes, times and shares, by the rule of src/support/units.cpp; tests/serve/test_same_numbers.py compares the two."""
from __future__ import annotations

import math
from typing import Optional

_KI = 1024
_UNKNOWN = "-"          # ASCII, as the minus: the standard output of a training script may have no other characters


def size(value: Optional[float]) -> str:
    """1536 -> '1.5 KiB'; None -> '-'."""
    if value is None:
        return _UNKNOWN
    whole = round(abs(value))
    sign = "-" if value < 0 else ""
    if whole < _KI:
        return f"{sign}{whole:,} B"
    unit, name = (_KI**3, "GiB") if whole >= 1_000_000 * _KI**2 else (_KI**2, "MiB") if whole >= _KI**2 else (_KI, "KiB")
    return f"{sign}{_tenths(whole, unit)} {name}"


def duration(seconds: Optional[float]) -> str:
    """0.0123 -> '12.3 ms'; None -> '-'."""
    if seconds is None:
        return _UNKNOWN
    us = round(seconds * 1e6)
    if us < 1000:
        return f"{us} µs"
    for unit, name, end in ((1000, "ms", 1_000_000), (1_000_000, "s", 600_000_000), (60_000_000, "min", 10_800_000_000)):
        if us < end:
            return f"{_tenths(us, unit)} {name}"
    return f"{_tenths(us, 3_600_000_000)} h"


def percent(share: float) -> str:
    """0.1256 -> '12.6 %'."""
    return f"{math.floor(share * 1000 + 0.5) / 10:.1f} %"


def rate(per_second: Optional[float]) -> str:
    """1234.5 -> '1,235', 2.345 -> '2.3'; None -> '-'."""
    if per_second is None:
        return _UNKNOWN
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:,.1f}"


def _tenths(value: int, unit: int) -> str:
    """One decimal, a half rounded up."""
    tenths = (value * 10 + unit // 2) // unit
    return f"{tenths // 10:,}.{tenths % 10}"
