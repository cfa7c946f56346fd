"""clang-tidy's findings are errors, in files and in headers, and where time is short the last changed files come first."""
import json
import shutil
import subprocess
import sys

import check_tidy
import pytest

CLEAN = {"src/a.cpp": '#include "a.h"\nint* first() { return made(); }\n', "src/a.h": "#pragma once\ninline int* made() { return nullptr; }\n",
         "src/b.cpp": "int* second() { return nullptr; }\n", "src/c.cpp": "int* third() { return nullptr; }\n"}
DEFECT = "modernize-use-nullptr"


@pytest.fixture
def tree(tmp_path, root, missing, monkeypatch):
    """A checkout with CLEAN and what a build of it leaves behind. g++ knows the warning option that is given to it, clang does not."""
    monkeypatch.delenv("VRAMSCOPE_BUILD", raising=False)
    if not check_tidy.CLANG_TIDY.exists():
        missing(str(check_tidy.CLANG_TIDY))
    for name, text in CLEAN.items():
        write(tmp_path / name, text)
    for name in ("tools/check_tidy.py", ".clang-tidy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    entries = [{"directory": str(tmp_path / "build"), "file": str(tmp_path / name),
                "command": f"c++ -Wall -Wduplicated-branches -Werror -o {name}.o -c {tmp_path / name}"} for name in CLEAN if name.endswith(".cpp")]
    write(tmp_path / "build/compile_commands.json", json.dumps(entries))
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def tidy(tree, *arguments):
    return subprocess.run([sys.executable, tree / "tools/check_tidy.py", *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("name", ["src/a.cpp", "src/a.h"])
def test_a_finding_is_an_error(tree, name):
    done = tidy(tree, tree / "src/a.cpp")
    assert done.returncode == 0 and done.stdout == "tidy: ok, 1 files\n", done.stdout
    write(tree / name, CLEAN[name].replace("return made()", "return 0").replace("nullptr", "0"))
    done = tidy(tree)
    assert done.returncode == 1 and DEFECT in done.stdout and f"{name}:2:" in done.stdout, done.stdout
    assert done.stdout.endswith("tidy: 1 of 3 files have findings\n")


def test_without_time_no_file_is_begun(tree):
    assert tidy(tree, "--seconds", "0").stdout == "tidy: 3 files were left for `make presubmit`\ntidy: ok, 0 files\n"


def test_a_file_that_is_not_compiled_is_refused(tree):
    done = tidy(tree, tree / "src/a.h")
    assert done.returncode == 2 and "not a file that the build compiles" in done.stderr


def test_the_last_changed_files_come_first(tree, monkeypatch):
    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example.com", *arguments], cwd=tree, check=True, capture_output=True)

    git("init")
    for name in ("src/a.cpp", "src/a.h", "src/b.cpp", "src/c.cpp"):
        git("add", name)
        git("commit", "-m", name)

    monkeypatch.setattr(check_tidy, "ROOT", tree)
    entries = {entry["file"]: entry for entry in json.loads((tree / "build/compile_commands.json").read_text())}
    dependencies = {"src/a.cpp.o": [tree / "src/a.cpp", tree / "src/a.h"], "src/b.cpp.o": [tree / "src/b.cpp"]}

    def order():
        return "".join(name.removesuffix(".cpp")[-1] for name in (entry["file"] for entry in check_tidy.newest_first(entries, dependencies)))

    assert order() == "cba"
    write(tree / "src/b.cpp", "int* other() { return nullptr; }\n")  # not committed
    assert order() == "bca"
    git("add", "src/b.cpp")  # nor is it now
    assert order() == "bca"
    git("commit", "-m", "b")
    write(tree / "src/a.h", "#pragma once\n")  # found through the file that includes it
    assert order() == "abc"
