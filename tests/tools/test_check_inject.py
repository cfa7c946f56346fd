"""The check of the injected library, shown libraries that break each of its rules."""
import subprocess

import pytest

import check_inject

CLEAN = 'extern "C" __attribute__((visibility("default"))) int vramscope_recording() { return 0; }\n'
FLAGS = ["-shared", "-fPIC", "-O1", "-fno-exceptions", "-fvisibility=hidden", "-nostartfiles"]


def library(folder, source, *flags):
    (folder / "lib.cpp").write_text(source)
    path = folder / "lib.so"
    subprocess.run(["gcc", *FLAGS, "-o", path, folder / "lib.cpp", *flags], check=True)
    return path


@pytest.fixture
def lists(tmp_path):
    """What is promised: the clean library, and the imports that single tests use."""
    check_inject.write_list(tmp_path / "lists/exports.txt", "", ["vramscope_recording"])
    check_inject.write_list(tmp_path / "lists/imports.txt", "", [])
    return tmp_path / "lists"


def test_accepts_a_clean_library(tmp_path, lists):
    assert list(check_inject.check(library(tmp_path, CLEAN), lists, set())) == []


@pytest.mark.parametrize("source, flags, said", [
    ('extern "C" __attribute__((visibility("default"))) void extra() {}', [], "exports extra"),
    ('#include <unistd.h>\nextern "C" void* keep() { return (void*)getpid; }\nvoid* p = keep();', [], "imports getpid"),
    ('#include <stdlib.h>\nvoid* p = malloc(3);', [], "uses malloc"),
    ('#include <stdlib.h>\nvoid (*p)(void*) = free;', [], "uses free"),
    ('#include <string.h>\nsize_t (*p)(const char*) = strlen;', [], "a sanitizer may have replaced"),
    ("int* p = new int;", [], "uses _Znwm"),
    ("#include <pthread.h>\nvoid* p = (void*)pthread_create;", [], "starts no threads"),
    ("thread_local char big[2000]; char* p = big;", ["-ftls-model=initial-exec"], "thread-local"),
    ("#include <math.h>\ndouble (*p)(double) = sin;", ["-Wl,--no-as-needed", "-lm"], "needs libm.so.6"),
    ("", ["-Wl,--no-as-needed", "-lstdc++"], "needs libstdc++.so.6"),
    ('extern "C" int arc4random(); int p = arc4random();', [], "newer than glibc 2.28"),
])
def test_refuses(tmp_path, lists, source, flags, said):
    errors = list(check_inject.check(library(tmp_path, CLEAN + source, *flags), lists, set()))
    assert any(said in error for error in errors), errors


def test_refuses_an_export_that_went_missing(tmp_path, lists):
    check_inject.write_list(lists / "exports.txt", "", ["vramscope_recording", "dlsym"])
    assert ["no longer exports dlsym" in error for error in check_inject.check(library(tmp_path, CLEAN), lists, set())] == [True]


def test_exports_the_hooks_of_every_table(tmp_path, lists):
    for name, text in {
        "driver/hooks.inc": "VS_HOOK(cuFirst, cuFirst, 3020, 0, alloc, (int* out), \"allocation\")\n//   VS_HOOK(symbol, base, since)\n",
        "first/hooks.inc": 'HOOK(first, allocate, "lib.so", void*,\n     "firstAllocate", (int bytes), (bytes))\n',
        "second/framework.cpp": '#define HOOKS(HOOK) \\\n  HOOK(second, release, "lib.so", void, "secondRelease", (void* memory), (memory))\n',
    }.items():
        (tmp_path / "capture" / name).parent.mkdir(parents=True)
        (tmp_path / "capture" / name).write_text(text)
    hooks = check_inject.hooked(tmp_path / "capture")
    assert hooks == {"cuFirst", "firstAllocate", "secondRelease"}
    made = library(tmp_path, CLEAN + 'extern "C" __attribute__((visibility("default"))) void cuFirst() {} void firstAllocate() {}')
    assert [error.split(",")[0] for error in check_inject.check(made, lists, hooks)] == ["no longer exports firstAllocate", "no longer exports secondRelease"]


def test_the_built_library(inject, run, root):
    run(["python3", root / "tools/check_inject.py", inject])
