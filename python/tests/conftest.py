"""What the tests of the Python package share: interpreters with a TensorFlow, recorded runs, what was recorded."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = Path(__file__).resolve().parent


def _load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_shared = _load("vramscope_tests_conftest", ROOT / "tests/conftest.py")
build, inject, vramscope, root = _shared.build, _shared.inject, _shared.vramscope, _shared.root
wait_until = _shared.wait_until_fixture
torch_python = _shared.torch_python
spool = _load("vramscope_tests_spool", TESTS / "spool.py")
VERSIONS = ["2.21", "2.16"]


@pytest.fixture(scope="session")
def python():
    """The interpreter with the newest TensorFlow."""
    return _shared.tensorflow_python("2.21")


@pytest.fixture(scope="session", params=VERSIONS)
def each_python(request):
    """An interpreter for the newest and for the oldest TensorFlow."""
    return _shared.tensorflow_python(request.param)


class Finished:
    """A script that ran: its output, the JSON it printed last, and the spool if it was recorded."""

    def __init__(self, done, spools):
        self.stdout, self.stderr = done.stdout, done.stderr
        self._spools = spools

    @property
    def answer(self):
        return json.loads(self.stdout.strip().splitlines()[-1])

    @property
    def recorded(self):
        """What was recorded, in order: the one recorded process of the run."""
        files = sorted(self._spools.glob("*.spool"))
        assert len(files) == 1, f"{len(files)} processes left a spool\n{self.stderr}"
        return spool.read(files[0])


@pytest.fixture
def run_python(tmp_path, build, inject):
    """run_python(interpreter, source, record=False, hook=True, env={...}, arguments=[...]) -> Finished."""

    def call(interpreter, source, record=False, hook=True, env=None, arguments=(), code=0, timeout=_shared.GUARD_S):
        script = source if isinstance(source, Path) else tmp_path / "script.py"
        if script is not source:
            script.write_text(source)
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "TF_CPU_ALLOCATOR_USE_BFC": "1", "CUDA_VISIBLE_DEVICES": "",
                       "VRAMSCOPE_BUILD": str(build), "PYTHONPATH": str(ROOT / "python"), "VRAMSCOPE_DEBUG": "1"}
        spools = tmp_path / "spool"
        if record:
            spools.mkdir(mode=0o700, exist_ok=True)
            environment.update(VRAMSCOPE_SPOOL=str(spools), LD_PRELOAD=str(inject))
            if hook:
                environment["PYTHONPATH"] = f"{ROOT / 'python/vramscope/_startup'}{os.pathsep}{environment['PYTHONPATH']}"
        environment.update(env or {})
        done = subprocess.run([str(interpreter), str(script), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, env=environment, cwd=tmp_path)
        assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Finished(done, spools)

    return call


@pytest.fixture
def quiet_data(tmp_path):
    """The program of the test can import the module of this name."""
    shutil.copy(ROOT / "tests/tensorflow/quiet_data.py", tmp_path)


@pytest.fixture
def record_python(tmp_path, build, vramscope):
    """record_python(interpreter, source) -> (the folder with the trace, what the program printed), through `vramscope run`."""

    def call(interpreter, source, code=0, options=(), timeout=_shared.GUARD_S):
        script = tmp_path / "script.py"
        script.write_text(source)
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "TF_CPU_ALLOCATOR_USE_BFC": "1", "CUDA_VISIBLE_DEVICES": "",
                       "VRAMSCOPE_BUILD": str(build), "PYTHONPATH": str(ROOT / "python"), "VRAMSCOPE_DEBUG": "1"}
        done = subprocess.run([str(vramscope), "run", "--quiet", "-o", str(tmp_path / "out"), *options, "--", str(interpreter), str(script)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, env=environment, cwd=tmp_path)
        assert done.returncode == code and "Traceback" not in done.stderr, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return tmp_path / "out", done.stdout

    return call


@pytest.fixture
def this_python():
    return Path(sys.executable)
