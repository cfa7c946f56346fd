"""A second checkout, in a folder of another name, compiles nothing that the first one has compiled."""
import os
import shutil
import subprocess

import pytest

# One file of ours, compiled with what the real build uses: presets, warnings, the precompiled header, ccache.
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(vramscope VERSION 0.1.0 LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_SOURCE_DIR}/cmake)
include(warnings)
include(sanitizers)
include(precompiled)
include(targets)
include(ccache)
vs_library(support SOURCES src/support/sentence.cpp)
"""


@pytest.fixture
def ccache(tmp_path, missing):
    """ccache(command, cwd=...) -> what it prints; the cache is the test's own."""
    if not shutil.which("ccache"):
        missing("ccache")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CCACHE_")} | {"CCACHE_DIR": str(tmp_path / "cache")}

    def run(*command, cwd=tmp_path):
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def checkout(folder, root):
    shutil.copytree(root / "cmake", folder / "cmake")
    shutil.copy(root / "CMakePresets.json", folder)
    (folder / "src/support").mkdir(parents=True)
    for name in ("sentence.cpp", "sentence.h"):
        shutil.copy(root / "src/support" / name, folder / "src/support")
    (folder / "CMakeLists.txt").write_text(PROJECT)
    return folder


def test_a_second_checkout_finds_what_the_first_compiled(tmp_path, root, ccache):
    def built(folder):
        """(hits, misses) after a build in this folder."""
        ccache("cmake", "--preset", "release", cwd=checkout(folder, root))
        ccache("cmake", "--build", "build", cwd=folder)
        counts = dict(line.split("\t") for line in ccache("ccache", "--print-stats").splitlines())
        return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"]), int(counts["cache_miss"])

    hits, misses = built(tmp_path / "one")
    assert hits == 0 and misses == 3  # the file, the precompiled header, the file that carries it
    assert built(tmp_path / "deeper/another") == (3, 3)
