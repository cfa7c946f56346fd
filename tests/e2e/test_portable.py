"""What is shipped runs on a machine that only has glibc, and an old one."""
import re
import subprocess

import pytest

GLIBC = {"ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"}
OLDEST = (2, 28)


def dynamic(path):
    return subprocess.run(["readelf", "-W", "-d", path], capture_output=True, text=True, check=True).stdout


def needed(path):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic(path)))


def newest_glibc(path):
    wanted = subprocess.run(["readelf", "-W", "-V", path], capture_output=True, text=True, check=True).stdout
    return max(tuple(map(int, version.split("."))) for version in re.findall(r"Name: GLIBC_([\d.]+)", wanted))


@pytest.mark.parametrize("name", ["vramscope", "libvramscope_inject.so", "libvramscope_tfops.so"])
def test_it_needs_only_an_old_glibc(vramscope, build, name):
    assert needed(build / name) <= GLIBC
    assert newest_glibc(build / name) <= OLDEST
    assert not re.search(r"\((RUNPATH|RPATH|TEXTREL)\)", dynamic(build / name))


def test_these_tests_can_fail():
    assert not needed("/bin/bash") <= GLIBC  # it needs a terminal library
    assert newest_glibc("/bin/bash") > OLDEST


# Everything that cmake/old_glibc replaces. Prints what the C library of this machine would answer.
PROGRAM = r"""
#include <sys/stat.h>
#include <dlfcn.h>
#include <unistd.h>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
static const std::string made = "constructors";
int main(int argc, char** argv) {
  std::puts(made.c_str());
  try { throw std::runtime_error(argv[argc - 1]); } catch (const std::exception& error) { std::puts(error.what()); }
  std::random_device random;
  std::printf("random %d\n", random() != random() || random() != random());
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  const auto begin = std::chrono::steady_clock::now();
  const bool late = condition.wait_for(lock, std::chrono::milliseconds(30)) == std::cv_status::timeout;
  std::printf("waited %d\n", late && std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(30));
  std::thread([] {
    try { std::stoi("x"); } catch (const std::invalid_argument&) { std::puts("thrown in a thread"); }
  }).join();
  struct stat by_path, by_file;
  std::printf("stat %d %d %d\n", stat("/etc", &by_path), lstat("/nothing", &by_file), S_ISDIR(by_path.st_mode));
  std::printf("files %d %d\n", std::filesystem::is_directory("/etc"), std::filesystem::exists("/nothing"));
  std::printf("numbers %ld %.17g %.17g\n", std::strtol("0x1f", nullptr, 0), std::pow(argc + 0.5, 2.5), std::exp(argc * 1.0));
  setenv("VRAMSCOPE_COPY", "seen", 1);  // environ is a variable of the C library that a program gets a copy of
  int seen = 0;
  for (char** each = environ; *each != nullptr; ++each) seen += std::string(*each) == "VRAMSCOPE_COPY=seen";
  std::printf("environment %d\n", seen);
  return dlsym(RTLD_DEFAULT, "malloc") != nullptr ? 7 : 1;
}
"""


def test_a_program_that_is_linked_so_behaves_as_any_other(vramscope, build, run, tmp_path):
    old = build / "glibc-2.28"
    (tmp_path / "program.cpp").write_text(PROGRAM)
    run(["g++", "-std=c++20", "-O1", "-fPIE", "-c", "-o", tmp_path / "program.o", tmp_path / "program.cpp"])
    run(["g++", "-pie", "-o", tmp_path / "usual", tmp_path / "program.o"])
    run(["g++", "-pie", "-o", tmp_path / "old", tmp_path / "program.o", "-static-libgcc", "-static-libstdc++", f"-L{old}",
         "-Wl,--wrap=__libc_start_main", "-Wl,--no-as-needed", "-l:libdl.so.2", "-l:libpthread.so.0"])
    assert newest_glibc(tmp_path / "old") <= OLDEST < newest_glibc(tmp_path / "usual")
    said = run([tmp_path / "usual", "thrown"], code=7).stdout
    assert run([tmp_path / "old", "thrown"], code=7).stdout == said
    assert "constructors\nthrown\nrandom 1\nwaited 1\nthrown in a thread\n" in said


def test_a_function_that_is_too_young_is_an_error_of_the_linker(vramscope, build, tmp_path):
    (tmp_path / "young.c").write_text("int close_range(int, int, int);\n"
                                      "int main(int n, char** v) { return close_range(n, n, 0); }\n")
    done = subprocess.run(["gcc", "-o", tmp_path / "young", tmp_path / "young.c", f"-L{build / 'glibc-2.28'}",
                           "-Wl,--wrap=__libc_start_main"], capture_output=True, text=True)
    assert done.returncode != 0 and "undefined reference to `close_range'" in done.stderr
