import json
import os
import subprocess

import pytest
from format_cases import PROGRAMS


@pytest.fixture(scope="session")
def made(build, run, tmp_path_factory):
    """made(case) -> (trace, what its generator counted)."""
    folder = tmp_path_factory.mktemp("traces")
    known = {}

    def make(case):
        if case not in known:
            trace = folder / f"{case}.vram"
            known[case] = trace, json.loads(run([build / "tracegen", case, trace, "seed=7"]).stdout)
        return known[case]

    return make


@pytest.fixture(scope="session")
def export(vramscope, run, tmp_path_factory):
    """export(trace, format, *options) -> the file."""
    folder = tmp_path_factory.mktemp("exported")
    count = iter(range(10_000))

    def call(trace, to, *options):
        file = folder / f"{next(count)}.{to}.tfevents"
        run([vramscope, "export", trace, "--to", to, "-o", file, *options])
        return file

    return call


@pytest.fixture(scope="session")
def answer(vramscope, run):
    """answer(verb, trace, *options) -> the verb's JSON."""

    def call(verb, trace, *options):
        return json.loads(run([vramscope, verb, trace, "--json", *options]).stdout)

    return call


@pytest.fixture
def devices(fakegpu, tmp_path):
    """The environment of a machine with two fake GPUs."""
    return {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state"), "FAKEGPU_DEVICES": "2"}


@pytest.fixture
def imported(vramscope, run, tmp_path):
    """imported(file) -> the trace."""

    def call(file):
        trace = tmp_path / f"{file.name}.vram"
        run([vramscope, "import", file, "-o", trace])
        return trace

    return call


@pytest.fixture(scope="session")
def tensorflow_files(newest_tensorflow, tmp_path_factory):
    """A profile, dumps and a log, with what TensorFlow counted."""
    folder = tmp_path_factory.mktemp("tensorflow")
    done = subprocess.run([newest_tensorflow, os.path.join(PROGRAMS, "tensorflow_profiles.py"), folder], capture_output=True, text=True,
                          env={**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "64", "TF_CPP_MIN_LOG_LEVEL": "0",
                               "TF_BFC_MEMORY_DUMP": str(folder / "dump")})
    assert done.returncode == 0, done.stderr[-3000:]
    (folder / "log.txt").write_text(done.stderr)
    return folder, json.loads(done.stdout.splitlines()[-1])
