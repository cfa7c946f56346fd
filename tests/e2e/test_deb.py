"""The Debian package, unpacked anywhere: the program finds its libraries and its Python side, and every verb has a man page."""
import shutil
import sys

import pytest


@pytest.fixture(scope="module")
def unpacked(build, run, vramscope, inject, tmp_path_factory):
    if not shutil.which("dpkg-deb"):
        pytest.skip("this is not Debian")
    folder = tmp_path_factory.mktemp("deb")
    run(["cpack", "--config", build / "CPackConfig.cmake", "-B", folder / "made"])
    package = next((folder / "made").glob("*.deb"))
    assert "libc6 (>= 2.28)" in run(["dpkg-deb", "-f", package, "Depends"]).stdout
    run(["dpkg-deb", "-x", package, folder / "root"])
    return folder / "root/usr"


def test_it_records(unpacked, run, tmp_path):
    program = "import vramscope; print(vramscope.is_recording(), vramscope._files.find('vramscope'))"
    done = run([unpacked / "bin/vramscope", "run", "-q", "-o", tmp_path / "run", "--", sys.executable, "-c", program],
               env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(unpacked / "lib/vramscope/python")})
    assert done.stdout == f"True {unpacked / 'bin/vramscope'}\n", done.stderr


def test_every_verb_has_a_man_page(unpacked, root):
    verbs = {path.stem for path in (root / "src/cli/verbs").glob("*.cpp")}
    assert {path.name for path in (unpacked / "share/man/man1").iterdir()} == {"vramscope.1", *(f"vramscope-{verb}.1" for verb in verbs)}


def test_the_license_is_where_debian_wants_it(unpacked, root):
    assert (unpacked / "share/doc/vramscope/copyright").read_bytes() == (root / "LICENSE").read_bytes()
