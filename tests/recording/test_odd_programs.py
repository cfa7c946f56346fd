"""Programs that leave a recorder little room: small stacks, closed descriptors, limits, other C libraries. They run as they do alone, and what
they allocate is recorded."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    program = tmp_path_factory.mktemp("odd") / "odd_victim"
    subprocess.run(["gcc", "-O1", "-o", program, PROGRAMS / "odd_victim.c", "-ldl", "-lpthread"], check=True, timeout=60)
    return program


@pytest.fixture
def compare(vramscope, build, tmp_path):
    """compare([command...]) -> its outcome, alone and recorded alike."""
    fakegpu = build / "tests/fakegpu"
    if not (fakegpu / "libcuda.so.1").exists():
        pytest.skip("the fake driver is not built")

    def call(command, options=(), **more):
        env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu)}
        words = [str(word) for word in command]
        before = [[], [str(vramscope), "run", "-q", "-o", str(tmp_path / "out"), *options, "--"]]
        outcomes = []
        for words_before in before:
            (tmp_path / "file").unlink(missing_ok=True)
            done = subprocess.run([*words_before, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=env, cwd=tmp_path, **more)
            file = (tmp_path / "file").read_text() if (tmp_path / "file").exists() else None
            outcomes.append((done.returncode, done.stdout, done.stderr, file))
        assert outcomes[0] == outcomes[1]
        return outcomes[0]

    return call


def recorded_allocations(vramscope, folder):
    done = subprocess.run([vramscope, "summary", "--json", folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["driver"]["allocs"]


@pytest.mark.parametrize("stacks", ["none", "both"])
@pytest.mark.parametrize("way, said", [
    ("small-stack", ("", None)),
    ("signal-stack", ("", None)),
    ("closed-output", ("", "0 1 2\n")),
    ("close-everything", ("", None)),
    ("take-numbers", ("0 bytes\n", "")),
    ("errno", ("errno 77\n", None)),
    ("cancelled", ("through 1\n", None)),
    ("daemon", ("1\n", None)),
])
def test_ways_to_use_a_device(compare, odd, vramscope, tmp_path, way, said, stacks):
    code, out, _, file = compare([odd, way, "file"], options=["--stacks", stacks])
    assert (code, out, file) == (0, *said)
    assert recorded_allocations(vramscope, tmp_path / "out") == 10


@pytest.mark.parametrize("way, said", [("errno", True), ("reused-error", False)])
def test_what_the_recorder_says_never_lands_in_a_file_of_the_programs(odd, inject, build, tmp_path, way, said):
    env = {**os.environ, "LD_LIBRARY_PATH": str(build / "tests/fakegpu"), "LD_PRELOAD": str(inject), "VRAMSCOPE_SPOOL": str(tmp_path / "not there")}
    done = subprocess.run([odd, way, tmp_path / "file"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=env)
    assert (done.returncode, "nothing is recorded" in done.stderr) == (0, said)
    assert not (tmp_path / "file").exists() or (tmp_path / "file").read_text() == ""


def test_under_a_limit_on_addresses_the_program_keeps_its_own(compare, vramscope, tmp_path):
    """Nearly all that the limit leaves is taken by the program: what the recorder reserves must not be what it lacks."""
    source, program = tmp_path / "large.c", tmp_path / "large"
    source.write_text("""
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
int main(void) {
  const struct rlimit limit = {1ul << 30, 1ul << 30};
  setrlimit(RLIMIT_AS, &limit);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* context; unsigned long long address;
  ((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
  ((int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
  ((int (*)(void*))dlsym(driver, "cuCtxSetCurrent"))(context);
  ((int (*)(unsigned long long*, size_t))dlsym(driver, "cuMemAlloc_v2"))(&address, 2 << 20);
  printf("%d\\n", mmap(0, 900ul << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
  return 0;
}
""")
    subprocess.run(["gcc", "-w", "-o", program, source, "-ldl"], check=True)
    assert compare([program])[1] == "1\n"
    assert recorded_allocations(vramscope, tmp_path / "out") == 1


LOOK_UP = """
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  printf("%d %d\\n", dlsym(RTLD_DEFAULT, "puts") != 0, dlsym(RTLD_DEFAULT, "no_such_function") != 0);
  return 5;
}
"""


def test_another_c_library(compare, tmp_path):
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-tools are not installed")
    (tmp_path / "look.c").write_text(LOOK_UP)
    subprocess.run(["musl-gcc", "-o", tmp_path / "look", tmp_path / "look.c"], check=True)
    assert compare([tmp_path / "look"]) == (5, "1 0\n", "", None)


def test_a_static_program(compare, tmp_path):
    (tmp_path / "still.c").write_text("#include <stdio.h>\nint main(void) { puts(\"still\"); return 6; }\n")
    subprocess.run(["gcc", "-static", "-o", tmp_path / "still", tmp_path / "still.c"], check=True)
    assert compare([tmp_path / "still"]) == (6, "still\n", "", None)


def test_a_program_under_valgrind(compare, odd, vramscope, tmp_path):
    code, out, errors, _ = compare(["valgrind", "-q", "--error-exitcode=9", odd, "errno"])
    assert (code, out, errors) == (0, "errno 77\n", "")
    assert recorded_allocations(vramscope, tmp_path / "out") == 10
