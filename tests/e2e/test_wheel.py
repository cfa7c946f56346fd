"""`pip install .` gives a working command and package, in an environment that has nothing else."""
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

import wheel_backend
from interpreters import pythons


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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, vramscope, inject):
    folder = tmp_path_factory.mktemp("dist")
    return folder / wheel_backend.build_wheel(folder)


def test_the_wheel_is_one_for_all_pythons(wheel):
    assert wheel.name.endswith("-py3-none-manylinux_2_28_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    assert {"vramscope/__init__.py", *(f"vramscope/_bin/{name}" for name in wheel_backend.SHIPPED)} <= names
    assert modes["vramscope/_bin/vramscope"] == 0o755
    assert not [n for n in names if "__pycache__" in n or n.startswith("tests")]


@pytest.mark.slow
@pytest.mark.parametrize("python", [pytest.param(path, id=version) for version, path in pythons()])
def test_it_records_with_every_python(wheel, python, run, root, tmp_path):
    run([python, "-m", "venv", tmp_path / "venv"])
    run([tmp_path / "venv/bin/pip", "install", "--quiet", "--no-index", wheel], env=outside())
    assert "wheel: ok" in run([tmp_path / "venv/bin/python", root / "tools/wheel_records.py", "python"], env=outside(), cwd=tmp_path).stdout


def test_auditwheel_says_what_the_tag_says(wheel, run):
    said = run([sys.executable, "-m", "auditwheel", "show", wheel]).stdout
    consistent = re.search(r'consistent\s+with\s+the\s+following\s+platform\s+tag:\s+"manylinux_2_(\d+)_x86_64"', said)
    assert consistent and int(consistent[1]) <= 28, said


def test_the_same_build_gives_the_same_wheel(wheel, tmp_path):
    assert (tmp_path / wheel_backend.build_wheel(tmp_path)).read_bytes() == wheel.read_bytes()


def test_one_version_everywhere(vramscope, run, root):
    said = run([vramscope, "--version"]).stdout
    assert re.fullmatch(r"vramscope ([\d.]+) \(commit (?:[0-9a-f]{12}(?:\+changes)?|unknown), .+\)\n", said)[1] == wheel_backend.version()
    assert f'__version__ = "{wheel_backend.version()}"' in (root / "python/vramscope/__init__.py").read_text()


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The source distribution, unpacked where no checkout is around it."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(folder / wheel_backend.build_sdist(folder)) as archive:
        archive.extractall(folder)
    return folder / f"vramscope-{wheel_backend.version()}"


def test_the_source_distribution_is_what_git_tracks(unpacked, run, root):
    tracked = set(run(["git", "-C", root, "ls-files", "-z"]).stdout.split("\0")) - {""}
    packed = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if not path.is_dir() or path.is_symlink()}
    assert packed == tracked | {"commit.txt", "PKG-INFO"}


def test_a_wheel_from_the_source_distribution_is_the_same(unpacked, wheel, build, run, tmp_path):
    script = f"import sys; sys.path.insert(0, 'tools'); import wheel_backend; print(wheel_backend.build_wheel({str(tmp_path)!r}))"
    name = run([sys.executable, "-c", script], cwd=unpacked, env=outside(VRAMSCOPE_BUILD=str(build))).stdout.strip()
    assert (tmp_path / name).read_bytes() == wheel.read_bytes()


def test_the_source_distribution_knows_its_commit(unpacked, run, root, tmp_path):
    def commit_of(source):
        run(["cmake", f"-DSOURCE={source}", f"-DOUTPUT={tmp_path / 'info.cpp'}", "-DBUILD=Release", "-P", root / "cmake/build_info.cmake"])
        return re.search(r'"commit (\S+), Release"', (tmp_path / "info.cpp").read_text())[1]

    head = run(["git", "-C", root, "rev-parse", "HEAD"]).stdout.strip()
    assert commit_of(unpacked) == commit_of(root)
    assert head.startswith(commit_of(root).removesuffix("+changes"))
    assert commit_of(tmp_path) == "unknown"
