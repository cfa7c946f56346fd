"""A table as text: numbers to the right, words to the left."""
from __future__ import annotations

from typing import Any, List, Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells: List[List[str]] = [list(header)] + [["" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    right = [bool(rows) and all(cell[:1].isdigit() or cell in ("", "-") for cell in (row[column] for row in cells[1:]))
             for column in range(len(header))]
    lines = ["  ".join(cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(row, widths, right)).rstrip()
             for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
