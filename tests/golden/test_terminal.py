"""Names in a trace on a terminal, which would obey them: exports and results that are otherwise written as they are."""
import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("VRAMSCOPE_BUILD", Path(__file__).resolve().parent.parent.parent / "build"))


@pytest.mark.parametrize("words", [["export", "--to", "csv", "-o", "-"], ["export", "--to", "collapsed", "-o", "-"], ["query", "--format", "csv"]])
def test_a_terminal_gets_no_escape_sequence(tmp_path, words):
    subprocess.run([BUILD / "tracegen", "hostile", tmp_path / "hostile.vram"], check=True, capture_output=True)
    leader, follower = pty.openpty()
    query = ["select * from blocks"] if words[0] == "query" else []
    child = subprocess.Popen([BUILD / "vramscope", *words, "hostile.vram", *query], cwd=tmp_path, stdout=follower, stderr=subprocess.DEVNULL,
                             env={**os.environ, "VRAMSCOPE_PYTHON": sys.executable})
    os.close(follower)
    text = b""
    with contextlib.suppress(OSError):          # the terminal's other end is closed
        while part := os.read(leader, 65536):
            text += part
    os.close(leader)
    assert child.wait() == 0 and b"title" in text, text[-500:]
    assert b"\x1b" not in text and b"\a" not in text
