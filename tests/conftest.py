"""What every test in tests/ may ask for: the built program, the library, a Python with a certain TensorFlow."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# In `make test` a missing part is a failure; by hand it is a skip.
REQUIRE_ALL = os.environ.get("VRAMSCOPE_REQUIRE_ALL") == "1"
TENSORFLOWS = {"2.21": ".venv", "2.18": ".venv-tf218", "2.16": ".venv-tf216"}


def missing(what):
    (pytest.fail if REQUIRE_ALL else pytest.skip)(f"{what} is missing; `make test` makes it")


def tensorflow_python(version):
    """The interpreter with TensorFlow `version`. VRAMSCOPE_PYTHON_TF221 (_TF218, _TF216) names another one."""
    other = os.environ.get("VRAMSCOPE_PYTHON_TF" + version.replace(".", ""))
    python = Path(other) if other else ROOT / TENSORFLOWS[version] / "bin/python"
    return python if python.exists() else missing(f"{python} with TensorFlow {version}")


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def build():
    return Path(os.environ.get("VRAMSCOPE_BUILD", ROOT / "build"))


def built(path):
    return path if path.exists() else missing(path)


@pytest.fixture(scope="session")
def vramscope(build):
    """The program."""
    return built(build / "vramscope")


@pytest.fixture(scope="session")
def inject(build):
    """The library that goes into the user's process."""
    return built(build / "libvramscope_inject.so")


@pytest.fixture(scope="session")
def newest_tensorflow():
    """The interpreter with the newest TensorFlow, for tests that need only one."""
    return tensorflow_python("2.21")


@pytest.fixture(scope="session")
def python_with():
    """python_with("2.16") -> the interpreter with that TensorFlow."""
    return tensorflow_python


@pytest.fixture(scope="session", params=list(TENSORFLOWS))
def tensorflow(request):
    """(version, interpreter), once for each TensorFlow."""
    return request.param, tensorflow_python(request.param)


@pytest.fixture(scope="session")
def run():
    """run(command, ...) -> CompletedProcess with text output; a wrong exit code fails the test and shows the output."""

    def call(command, code=0, timeout=120, **options):
        done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, **options)
        assert code is None or done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return call


def pytest_terminal_summary(terminalreporter):
    """The confusion table of tests/tensorflow/test_leaks_real.py, from the reports of all workers."""
    seen = [tuple(value) for reports in terminalreporter.stats.values() for report in reports
            for key, value in getattr(report, "user_properties", []) if key == "leak verdict" and report.when == "call"]
    if not seen:
        return
    verdicts = ("growing", "not growing", "cannot tell")
    terminalreporter.section("leak verdicts on real programs")
    terminalreporter.write_line(f"{'truth':8}" + "".join(f"{v:>14}" for v in verdicts))
    for truth in ("clean", "leak"):
        terminalreporter.write_line(f"{truth:8}" + "".join(f"{seen.count((truth, v)):14}" for v in verdicts))
