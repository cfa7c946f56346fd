"""Memory in tests: limits, peaks and leaks, from the counters of the framework that the tests use (or of the recorder).

    @pytest.mark.vram_limit("2 GiB")             # fails if the test's peak is higher, on any device
    def test_step(vram):
        train_one_step()
        assert vram.peak < 100_000_000           # bytes above what was live when the test began
        assert vram.growth == 0

    pytest --vram                                # shows the peaks of all tests, and what they left behind

pytest finds the plugin in the installed package. It imports no framework and does nothing until a test uses it or --vram is given.
"""
from __future__ import annotations

import re
from typing import Any, Dict, Generator, List, NamedTuple, Union

import pytest

from . import _units
from ._memory import memory_info, reset_peak

_FACTORS = {"": 1, "B": 1, **{prefix + ending: 1024 ** power for power, prefix in enumerate("KMGT", 1) for ending in ("", "B", "iB")}}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?(?:i?B)?)\s*")


def parse_size(size: Union[int, str]) -> int:
    """'2 GiB' -> 2147483648. ValueError for anything that is not a size."""
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if match:
        return round(float(match.group(1)) * _FACTORS[match.group(2)])
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ValueError(f"vram_limit={size!r}: expected bytes, or a size such as '2 GiB'")
    return size


class Reading(NamedTuple):
    """A device while a test ran, in bytes."""

    device: str
    peak: int       # above what was live when the test began
    growth: int     # what was still live at its end


class Vram:
    """Memory since the test began. Without a device: the one with the highest peak."""

    def __init__(self) -> None:
        self._before = _current()
        for device in self._before:
            reset_peak(device)

    def readings(self) -> List[Reading]:
        """Of every device that has counters."""
        now = {info.device: info for info in memory_info()}
        # A device that had no counters when the test began was empty then.
        return [Reading(device, max(0, info.peak - self._before.get(device, 0)), info.current - self._before.get(device, 0))
                for device, info in now.items()]

    def _of(self, device: Union[str, None]) -> Reading:
        found = [reading for reading in self.readings() if device in (None, reading.device)]
        if not found and device is not None:
            raise ValueError(f"device={device!r}: expected a device that the test has used")
        return max(found, key=lambda reading: reading.peak, default=Reading("", 0, 0))

    @property
    def peak(self) -> int:
        return self._of(None).peak

    @property
    def growth(self) -> int:
        return self._of(None).growth

    def on(self, device: str) -> Reading:
        return self._of(device)


def _current() -> Dict[str, int]:
    return {info.device: info.current for info in memory_info()}


_KEY: Any = pytest.StashKey[Vram]()
_PROPERTY = "vramscope"


def pytest_addoption(parser: Any) -> None:
    parser.getgroup("vramscope").addoption("--vram", action="store_true", help="show the memory peak of each test, and what tests leave behind")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "vram_limit(size): fail the test if its memory peak on a device is higher, e.g. '2 GiB'")


@pytest.fixture
def vram(request: Any) -> Vram:
    """Memory of the devices since the test began."""
    return request.node.stash[_KEY]     # type: ignore[no-any-return]


def _is_wanted(item: Any) -> bool:
    return bool(item.config.getoption("--vram") or item.get_closest_marker("vram_limit") or "vram" in getattr(item, "fixturenames", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    if _is_wanted(item):
        item.stash[_KEY] = Vram()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, None]:
    outcome = yield
    marker = item.get_closest_marker("vram_limit")
    if marker is None or outcome.excinfo is not None:
        return
    if len(marker.args) != 1 or marker.kwargs:
        outcome.force_exception(ValueError("vram_limit: expected one size, such as @pytest.mark.vram_limit('2 GiB')"))
        return
    try:
        limit = parse_size(marker.args[0])
        over = [reading for reading in item.stash[_KEY].readings() if reading.peak > limit]
        if over:
            said = ", ".join(f"{_units.size(reading.peak)} on {reading.device}" for reading in over)
            pytest.fail(f"memory peak of {said}; the limit is {_units.size(limit)}", pytrace=False)
    except BaseException as error:      # noqa: B036 - pytest.fail raises one that is not an Exception
        outcome.force_exception(error)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: Any) -> None:
    if _KEY in item.stash:
        # The fixtures are torn down, and pytest lets go of their values only after this report: they are not left behind.
        (getattr(item, "funcargs", None) or {}).clear()
        item.user_properties.extend((_PROPERTY, list(reading)) for reading in item.stash[_KEY].readings())


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    if not config.getoption("--vram"):
        return
    rows = [(Reading(*value), report.nodeid) for reports in terminalreporter.stats.values() for report in reports
            for key, value in getattr(report, "user_properties", []) if key == _PROPERTY and report.when == "teardown"]
    terminalreporter.section("memory of tests")
    if not rows:
        terminalreporter.write_line("no test used a device with counters")
        return
    terminalreporter.write_line(f"{'PEAK':>12} {'LEFT BEHIND':>12}  DEVICE  TEST")
    for reading, test in sorted(rows, key=lambda row: -row[0].peak):
        left = _units.size(reading.growth) if reading.growth else "-"
        terminalreporter.write_line(f"{_units.size(reading.peak):>12} {left:>12}  {reading.device:6}  {test}")
