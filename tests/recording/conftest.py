"""The producer of known events, and the reading of what became of them."""
import pytest

from recording_support import Counters, Trace


@pytest.fixture(scope="session")
def producer(build):
    path = build / "tests/spool_producer"
    if not path.exists():
        pytest.fail(f"{path} is missing; `make build` makes it")
    return path


@pytest.fixture
def counters(tmp_path):
    return Counters(tmp_path / "counters")


@pytest.fixture
def traces_in(vramscope):
    """traces_in(folder) -> [Trace]"""
    return lambda folder: [Trace(vramscope, path) for path in sorted(folder.glob("*.vram"))]
