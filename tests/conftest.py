"""What every test in tests/ may ask for: the built program, the library, a Python with a certain TensorFlow."""
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# In `make test` a missing part is a failure; by hand it is a skip.
REQUIRE_ALL = os.environ.get("VRAMSCOPE_REQUIRE_ALL") == "1"
# Tests wait for conditions; these seconds only end a test that hangs, on a machine however busy.
GUARD_S = 600
os.environ.pop("COLUMNS", None)      # tables follow it
TENSORFLOWS = {"2.21": ".venv", "2.18": ".venv-tf218", "2.16": ".venv-tf216"}


def missing(what):
    (pytest.fail if REQUIRE_ALL else pytest.skip)(f"{what} is missing; `make test` makes it")


@pytest.fixture(scope="session", name="missing")
def missing_fixture():
    """missing(what) fails in `make test`, else skips."""
    return missing


def wait_until(condition, what, seconds=GUARD_S):
    """What condition() returns, once that is true."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"never happened: {what() if callable(what) else what}"
        time.sleep(0.01)
    return value


@pytest.fixture(scope="session", name="wait_until")
def wait_until_fixture():
    """wait_until(condition, what) -> what condition() returns, once that is true."""
    return wait_until


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
def fakegpu(build):
    """The folder of the fake driver."""
    folder = build / "tests/fakegpu"
    if not (folder / "libcuda.so.1").exists():
        pytest.skip("the fake driver is not built")
    return folder


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


def part_of(framework, path, what):
    """`path`, which belongs to the tests with TORCH or JAX; that variable as 0 leaves them out."""
    if os.environ.get(framework) == "0":
        pytest.skip(f"{framework}=0: the tests with it are left out")
    if not path.exists():
        (pytest.fail if REQUIRE_ALL else pytest.skip)(f"{path} ({what}) is missing; `make test` makes it, {framework}=0 leaves these tests out")
    return path


@pytest.fixture(scope="session", name="part_of")
def part_of_fixture():
    """part_of("JAX", path, what) -> path; the test is skipped or fails where it is missing."""
    return part_of


@pytest.fixture(scope="session")
def torch_python():
    """The interpreter with PyTorch. VRAMSCOPE_PYTHON_TORCH names another one."""
    return part_of("TORCH", Path(os.environ.get("VRAMSCOPE_PYTHON_TORCH", ROOT / ".venv-torch/bin/python")), "Python with PyTorch")


@pytest.fixture(scope="session")
def jax_python():
    """The interpreter with JAX. VRAMSCOPE_PYTHON_JAX names another one."""
    return part_of("JAX", Path(os.environ.get("VRAMSCOPE_PYTHON_JAX", ROOT / ".venv-jax/bin/python")), "Python with JAX")


@pytest.fixture(scope="session")
def run():
    """run(command, ...) -> CompletedProcess with text output; a wrong exit code fails the test and shows the output."""

    def call(command, code=0, timeout=GUARD_S, **options):
        done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, **options)
        assert code is None or done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return call


# A small process in between: the kernel counts what the forking process had as the child's, and a test runner has hundreds of MiB.
_BETWEEN = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True)
sys.stdout.buffer.write(b"%d\\n" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss + done.stdout)
sys.stderr.buffer.write(done.stderr)
sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)"""


@pytest.fixture(scope="session")
def run_measured():
    """run_measured(command) -> (bytes of resident memory at most, exit code, output, errors); a signal gives 128 and its number, as in a shell."""

    def call(command, **options):
        done = subprocess.run([sys.executable, "-S", "-c", _BETWEEN, *map(str, command)], capture_output=True, text=True, **options)
        most, _, output = done.stdout.partition("\n")
        return int(most) * 1024, done.returncode, output, done.stderr

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
