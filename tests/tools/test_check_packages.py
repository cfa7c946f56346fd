"""The list of system packages is what build and scripts use: every line of it can be shown to be needed."""
import dataclasses
import os
import shutil
import subprocess

import check_packages
import pytest
from packages.listed import Line, Need, read_list
from packages.script_needs import python_commands, shell_commands
from packages.system import System

ROOT = check_packages.ROOT
LISTED = read_list(ROOT / "tools/packages.txt")


@pytest.fixture(scope="module")
def check(build):
    """check(lines) -> what is wrong with a list of these lines."""
    system = System()
    owned = check_packages.collect(ROOT, build, system)
    return lambda lines: list(check_packages.check(lines, owned, system))


def test_the_list_is_right(check):
    assert check(LISTED) == []


@pytest.mark.parametrize("line", LISTED, ids=lambda line: line.package)
def test_no_line_can_be_missing(check, line):
    errors = check([other for other in LISTED if other != line])
    assert any(" lacks " in error for error in errors), f"without {line.package} nothing was found: {errors}"


def test_a_line_twice(check):
    assert check([*LISTED, LISTED[0]]) == [f"{LISTED[0].package} is listed twice"]


def test_a_line_that_nothing_needs(check):
    assert check([*LISTED, Line("bsdgames", "build")]) == ["nothing needs bsdgames"]


def test_what_a_plain_debian_has_differs_from_a_larger_one():
    """There, CMake finds Debian's own Python, and apt is not a required package."""
    system = System()
    python = Need("/usr/bin/python3", "build", True, "build.ninja")
    assert system.owners([python]) == {python: "python3"}
    assert system.is_base("apt")


@pytest.mark.parametrize("package", ["clang-19", "valgrind", "chromium", "libgtest-dev"])
def test_the_build_does_not_ask_for_what_only_tests_need(check, package):
    moved = [dataclasses.replace(line, section="build") if line.package == package else line for line in LISTED]
    assert check(moved) == [f"{package} is needed by [test] alone, not by [build]"]


@pytest.mark.parametrize("text, found", [
    ("if ! strip a; then sudo -n true | awk 1 && x=$(readelf b); fi\n", {"strip", "sudo", "awk", "readelf", "fi"}),
    ("\t@export A=1 && tools/progress.sh \"a word\" cmake --build x\n", {"export", "cmake"}),
    ("A=1 exec env B=2 gdb \\\n  -p 1  # not lldb\n", {"gdb"}),
    ("PYTHON ?= python3\n", {"python3"}),
    ('"${PYTHON:-python3}" -m venv x\n', {"python3"}),
])
def test_commands_of_a_shell_script(text, found):
    assert found <= shell_commands(text)
    assert "lldb" not in shell_commands(text)


def test_commands_of_a_python_script():
    text = 'TOOL = "clang-format-19"\nrun(["readelf", "-d", p])\nrun(("valgrind", "--x"))\nshutil.which("npm")\nrun(["sh", "-ec", "a | gdb -p 1"])\n'
    assert python_commands(text) == {"clang-format-19", "readelf", "valgrind", "npm", "sh", "a", "gdb"}


@pytest.fixture
def bare_machine(tmp_path):
    """Environment of a user without root on a Debian on which nothing is installed."""
    for name, script in {"dpkg-query": "exit 1", "id": "echo 1000", "sudo": "exit 1", "apt-cache": "exit 0", "node": "exit 1"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.fixture
def copied_makefile(tmp_path):
    """plan(target, folder="checkout") -> CompletedProcess of `make --dry-run` where nothing has been set up."""

    def plan(target, folder="checkout"):
        for name in ("Makefile", "CMakePresets.json", "tools/packages.txt", "tools/gen_rpc.py", "ui/package-lock.json", "schema/answers/schema.json",
                     "schema/rpc/schema.json", *map(str, TARGET_INPUTS)):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / folder / name)
        return subprocess.run(["make", "--dry-run", target], cwd=tmp_path / folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    return plan


TARGET_INPUTS = [path.relative_to(ROOT) for path in (ROOT / "tools/requirements").glob("*.txt")]


@pytest.mark.parametrize("section, targets", {
    "build": ["demo", "build", "test-gpu"],
    "test": ["everything", "check", "test", "test-frameworks", "test-browser", "bench", "pictures", "fuzz", "soak"],
    "presubmit": ["presubmit", "bare"]}.items())
def test_the_packages_of_a_target_come_before_anything_else(copied_makefile, section, targets):
    for target in targets:
        done = copied_makefile(target)
        assert done.returncode == 0, (target, done.stderr)
        first = next(line for line in done.stdout.splitlines() if "tools/" in line)
        assert first == f"tools/setup.sh packages {section}", target


def test_a_folder_from_which_nothing_can_be_recorded_is_refused_before_the_build(copied_makefile):
    for folder in ("a b", "a:b"):
        done = copied_makefile("demo", folder)
        assert done.returncode == 2 and "has a space or a colon in it" in done.stderr


@pytest.mark.parametrize("section, sections", [("build", {"build"}), ("test", {"build", "test"}), ("presubmit", {"build", "test", "presubmit"})])
def test_without_root_the_line_for_that_target_is_printed(bare_machine, section, sections):
    done = subprocess.run([ROOT / "tools/setup.sh", "packages", section], env=bare_machine, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1
    before, after = done.stderr.splitlines()[-1].split("--no-install-recommends ")
    assert before.startswith("apt-get update && apt-get install -y")
    assert sorted(after.split()) == sorted(line.package for line in LISTED if line.section in sections)
