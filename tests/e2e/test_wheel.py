"""`pip install .` gives a working command and package, in an environment that has nothing else."""
import os
import subprocess
import sys
import zipfile

import pytest

import wheel_backend


@pytest.fixture(scope="module")
def installed(tmp_path_factory, vramscope, inject, build, root):
    """The bin folder of a fresh environment, outside the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    environment = {**os.environ, "VRAMSCOPE_BUILD": str(build), "PIP_NO_INDEX": "1"}  # nothing has to be fetched
    subprocess.run([folder / "venv/bin/pip", "install", "--quiet", root], check=True, env=environment, cwd=folder)
    return folder / "venv/bin"


def outside(**more):
    """An environment that does not lead back into the checkout."""
    return {**{k: v for k, v in os.environ.items() if not k.startswith(("VRAMSCOPE", "PYTHONPATH"))}, **more}


@pytest.mark.slow
def test_the_installed_command_is_the_program(installed, vramscope, run, tmp_path):
    said = run([installed / "vramscope", "--version"], env=outside(), cwd=tmp_path).stdout
    assert said == run([vramscope, "--version"]).stdout and wheel_backend.version() in said


@pytest.mark.slow
def test_the_installed_package_finds_its_own_files(installed, run, tmp_path):
    script = "import vramscope, vramscope._files as f; print(f.library(f.INJECT)); print(f.program())"
    for line in run([installed / "python", "-c", script], env=outside(), cwd=tmp_path).stdout.splitlines():
        assert line.startswith(str(installed.parent / "lib"))


@pytest.mark.slow
def test_the_installed_command_runs_a_program(installed, run, tmp_path):
    done = run([installed / "vramscope", "run", "-o", tmp_path / "out", "--", "sh", "-c", "echo hello; exit 3"], code=3,
               env=outside(), cwd=tmp_path)
    assert done.stdout == "hello\n"


def test_the_wheel_is_one_for_all_pythons(vramscope, inject, tmp_path):
    name = wheel_backend.build_wheel(tmp_path)
    assert name.endswith("-py3-none-linux_x86_64.whl")
    with zipfile.ZipFile(tmp_path / name) as wheel:
        names = set(wheel.namelist())
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in wheel.infolist()}
    assert {"vramscope/__init__.py", "vramscope/_bin/vramscope", "vramscope/_bin/libvramscope_inject.so"} <= names
    assert modes["vramscope/_bin/vramscope"] == 0o755
    assert not [n for n in names if "__pycache__" in n or n.startswith("tests")]
