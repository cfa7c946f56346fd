"""What is shipped runs on a machine that only has glibc."""
import re
import subprocess

GLIBC = {"ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libresolv.so.2"}


def needed(path):
    dynamic = subprocess.run(["readelf", "-W", "-d", path], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)), re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)


def test_the_program_needs_only_glibc_and_what_lies_beside_it(vramscope, build):
    shipped = {path.name for path in (build / "lib").glob("*.so*")}
    libraries, run_path = needed(vramscope)
    assert libraries <= GLIBC | shipped
    assert run_path in ([], ["$ORIGIN/lib"])
    for name in shipped:
        assert needed(build / "lib" / name)[0] <= GLIBC | shipped


def test_this_test_can_fail():
    assert not needed("/bin/bash")[0] <= GLIBC  # it needs a terminal library
