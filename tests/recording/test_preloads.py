"""Programs with a sanitizer or another allocator inside run under `vramscope run` as they do alone, and are recorded where they use a device."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent / "programs/preload_victim.c"
GCC = ["gcc"]
CLANG = ["clang-19"]
# name -> (compiler and options, the mistake that this sanitizer finds)
BUILDS = {
    "gcc": (GCC, None),
    "gcc-asan": ([*GCC, "-fsanitize=address"], "overflow"),
    "gcc-asan-static": ([*GCC, "-fsanitize=address", "-static-libasan"], "overflow"),
    "gcc-tsan": ([*GCC, "-fsanitize=thread"], "race"),
    "gcc-tsan-static": ([*GCC, "-fsanitize=thread", "-static-libtsan"], "race"),
    "gcc-ubsan": ([*GCC, "-fsanitize=undefined", "-fno-sanitize-recover=all"], "number"),
    "gcc-lsan": ([*GCC, "-fsanitize=leak"], "leak"),
    "gcc-asan-ubsan": ([*GCC, "-fsanitize=address,undefined"], "leak"),
    "clang-asan": ([*CLANG, "-fsanitize=address"], "overflow"),
    "clang-asan-shared": ([*CLANG, "-fsanitize=address", "-shared-libsan"], "overflow"),
    "clang-tsan": ([*CLANG, "-fsanitize=thread"], "race"),
    "clang-ubsan": ([*CLANG, "-fsanitize=undefined", "-fno-sanitize-recover=all"], "number"),
    "clang-lsan": ([*CLANG, "-fsanitize=leak"], "leak"),
    "clang-msan": ([*CLANG, "-fsanitize=memory"], "uninitialized"),
}
ALLOCATORS = ["/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"]


def runtime_folder(compiler):
    """Where the shared runtime of a compiler's sanitizers is."""
    return subprocess.run([*compiler, "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, text=True, check=True).stdout.strip()


def gcc_runtime(name):
    path = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    assert os.path.isabs(path), f"{name} is missing; g++ brings it"
    return os.path.realpath(path)


@pytest.fixture(scope="session")
def victim(tmp_path_factory):
    """victim(name) -> the program, built with that sanitizer."""
    folder = tmp_path_factory.mktemp("victims")

    def build(name):
        program = folder / name
        if not program.exists():
            options, _ = BUILDS[name]
            extra = [f"-Wl,-rpath,{os.path.dirname(runtime_folder(CLANG))}"] if "-shared-libsan" in options else []
            subprocess.run([*options, *extra, "-g", "-O0", "-o", program, SOURCE, "-ldl", "-lpthread"], check=True, timeout=120)
        return program

    return build


# Process numbers, addresses and times differ from run to run.
CHANGING = re.compile(r"==\d+==|0x[0-9a-f]+|\bT\d+\b|\(?pid[=: ]\d+\)?|tid[=: ]\d+|\+0x|BuildId: \w+")


def outcome(done):
    """Output, exit code, and what the sanitizer said in short: reports name threads and frames in an order that is not ours."""
    summary = [CHANGING.sub("", line) for line in done.stderr.splitlines() if line.startswith("SUMMARY:") or "runtime error" in line or "ERROR:" in line]
    return done.stdout, done.returncode, summary


@pytest.fixture
def compare(vramscope, tmp_path, fakegpu):
    """compare([command...], **environment): runs it alone and recorded, and returns both, whose outcomes must be the same."""

    def call(command, **environment):
        env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(tmp_path / "state"), **environment}
        words = [str(word) for word in command]
        plain, recorded = (
            subprocess.run([*before, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=env, cwd=tmp_path)
            for before in ([], [str(vramscope), "run", "-q", "-o", str(tmp_path / "out"), "--"]))
        assert outcome(recorded) == outcome(plain), f"alone:\n{plain.stderr}\nrecorded:\n{recorded.stderr}"
        if not plain.stderr:
            assert recorded.stderr == ""
        return plain, recorded

    return call


def recorded_allocations(vramscope, folder):
    done = subprocess.run([vramscope, "summary", "--json", folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["driver"]["allocs"]


@pytest.mark.parametrize("name", BUILDS)
def test_a_sanitized_program_runs_as_it_does_alone(compare, victim, name):
    plain, _ = compare([victim(name), "dl", "threads", "children"])
    assert plain.returncode == 7 and "child 7 5" in plain.stdout


@pytest.mark.parametrize("name", BUILDS)
def test_a_sanitized_program_is_recorded(compare, vramscope, victim, tmp_path, name):
    plain, _ = compare([victim(name), "cuda"])
    assert plain.returncode == 7 and plain.stdout == "cuda 150\n"
    assert recorded_allocations(vramscope, tmp_path / "out") == 150


@pytest.mark.parametrize("name", [name for name, (_, mistake) in BUILDS.items() if mistake])
def test_the_sanitizer_still_finds_its_mistake(compare, victim, name):
    plain, _ = compare([victim(name), BUILDS[name][1]])
    assert plain.returncode not in (0, 7) and plain.stderr


def test_the_programs_own_sanitizer_options_hold(compare, victim):
    plain, _ = compare([victim("gcc-asan"), "overflow"], ASAN_OPTIONS="exitcode=33")
    assert plain.returncode == 33


def test_a_shell_that_sets_its_own_sanitizer_options(compare, victim):
    plain, _ = compare(["sh", "-c", f"ASAN_OPTIONS=exitcode=34 {victim('gcc-asan')} overflow"])
    assert plain.returncode == 34


def test_a_program_with_options_of_its_own(compare, tmp_path):
    source, program = tmp_path / "own.c", tmp_path / "own"
    source.write_text('const char* __asan_default_options(void) { return "exitcode=35"; }\n'
                      "#include <stdlib.h>\nint main(void) { char* volatile p = malloc(4); p[4] = 1; return p[4]; }\n")
    subprocess.run(["gcc", "-fsanitize=address", "-o", program, source], check=True)
    plain, _ = compare([program])
    assert plain.returncode == 35


@pytest.mark.parametrize("library", ["libasan.so", "libtsan.so", "liblsan.so", "libubsan.so"])
def test_a_preloaded_sanitizer(compare, victim, library):
    preload = gcc_runtime(library)
    assert compare(["/bin/true"], LD_PRELOAD=preload)[0].returncode == 0
    plain, _ = compare([victim("gcc"), "dl", "threads", "children"], LD_PRELOAD=preload)
    assert plain.returncode == 7


@pytest.mark.parametrize("library", ["libasan.so", "libtsan.so"])
def test_a_program_with_a_preloaded_sanitizer_is_recorded(compare, vramscope, victim, tmp_path, library):
    assert compare([victim("gcc"), "cuda"], LD_PRELOAD=gcc_runtime(library))[0].returncode == 7
    assert recorded_allocations(vramscope, tmp_path / "out") == 150


@pytest.mark.parametrize("library", ALLOCATORS, ids=os.path.basename)
def test_another_allocator_is_preloaded(compare, vramscope, victim, tmp_path, library):
    if not os.path.exists(library):
        pytest.skip(f"{library} is not installed; tools/packages.txt has its package")
    plain, _ = compare([victim("gcc"), "dl", "threads", "children", "cuda"], LD_PRELOAD=library)
    assert plain.returncode == 7 and "cannot be preloaded" not in plain.stderr
    assert recorded_allocations(vramscope, tmp_path / "out") == 150


@pytest.mark.parametrize("before, after", [
    (None, "OURS"),
    ("", "OURS"),
    ("liba.so", "OURS:liba.so"),
    ("/x/libasan.so.8:liba.so", "/x/libasan.so.8:OURS:liba.so"),
    ("libclang_rt.asan-x86_64.so libb.so", "libclang_rt.asan-x86_64.so:OURS:libb.so"),
    ("liba.so:/x/libtsan.so.2", "OURS:liba.so:/x/libtsan.so.2"),
    ("liba.so:OURS", "liba.so:OURS"),
])
def test_the_order_of_preloaded_libraries(vramscope, inject, tmp_path, before, after):
    ours = str(inject)
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if before is not None:
        env["LD_PRELOAD"] = before.replace("OURS", ours)
    words = [vramscope, "run", "-q", "-o", tmp_path / "out", "--", shutil.which("printenv"), "LD_PRELOAD"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, env=env)
    assert done.stdout.strip() == after.replace("OURS", ours)
