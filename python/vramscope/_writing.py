"""Writing files that the user named, in folders where somebody else may have put a link under that name."""
from __future__ import annotations

import contextlib
import os
import secrets
from typing import Union


def write_text(path: Union[str, "os.PathLike[str]"], text: str) -> None:
    """Writes the whole file and then puts it at `path` in one step. A link there is replaced, not followed."""
    path = os.fspath(path)
    fresh = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{secrets.token_hex(8)}")
    try:
        with open(fresh, "x", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise


def open_without_links(path: str, flags: int) -> int:
    """An opener for `open`: for files that grow line by line and cannot be replaced at the end."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
