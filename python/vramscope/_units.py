"""Sizes as people read them."""
from __future__ import annotations

from typing import Optional


def size(value: Optional[float]) -> str:
    """1536 -> '1.5 KiB'; None -> '-'."""
    if value is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024 or unit == "GiB":
            return f"{value:.0f} B" if unit == "B" else f"{value:.2f} {unit}" if abs(value) < 10 else f"{value:.1f} {unit}"
        value /= 1024
    return ""
