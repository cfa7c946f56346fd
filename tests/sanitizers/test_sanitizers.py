"""Each sanitizer preset fires: the same CMake settings, applied to a program with one fault of each class."""
import pytest

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(faults LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH {root}/cmake)
include(sanitizers)
find_package(Threads REQUIRED)
add_executable(faults {root}/tests/sanitizers/faults.cpp)
target_compile_features(faults PRIVATE cxx_std_20)
target_link_libraries(faults PRIVATE vs_sanitize Threads::Threads)
"""


@pytest.fixture(scope="module")
def faults(tmp_path_factory, root, run):
    """faults(sanitizer) -> the program built like the preset builds."""

    def make(sanitizer):
        folder = tmp_path_factory.mktemp(sanitizer)
        (folder / "CMakeLists.txt").write_text(PROJECT.format(root=root))
        configure = ["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", "-DCMAKE_CXX_COMPILER=clang++-19",
                     "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DVRAMSCOPE_SANITIZE={sanitizer}"]
        run(configure)
        run(["cmake", "--build", folder / "build"])
        return folder / "build/faults"

    return make


@pytest.mark.parametrize("sanitizer, reports", [
    ("address", {"address": "AddressSanitizer: heap-use-after-free", "undefined": "signed integer overflow"}),
    ("thread", {"thread": "ThreadSanitizer: data race"}),
])
def test_each_sanitizer_fires(faults, run, sanitizer, reports):
    program = faults(sanitizer)
    run([program, "none"])
    for fault, report in reports.items():
        done = run([program, fault], code=None)
        assert done.returncode != 0 and report in done.stderr
