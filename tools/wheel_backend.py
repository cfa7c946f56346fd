"""Builds the wheel: the program, the libraries and the Python package in one file that serves every Python version.

A build backend in the sense of PEP 517 and PEP 660, small because there is nothing to compile against Python: CMake builds, the
files are put into an archive. VRAMSCOPE_BUILD names a finished build folder; without it one is made in build/.
"""
import base64
import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAG = "py3-none-manylinux_2_28_x86_64"  # cmake/portable.cmake makes it true
SHIPPED = ["vramscope", "libvramscope_inject.so", "libvramscope_tfops.so"]  # of the build folder, into vramscope/_bin
DATE = (1980, 1, 1, 0, 0, 0)  # of all files in a wheel: the same sources give the same bytes


def version():
    return re.search(r"^project\(vramscope VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)


def build_user_interface():
    """Its pages go into the program. Without npm they are left out, and the program says so when it is asked for one."""
    if not (ROOT / "ui/dist/index.html").exists() and shutil.which("npm"):
        subprocess.run(["npm", "--prefix", ROOT / "ui", "install", "--no-save", "--no-audit", "--no-fund"], check=True)
        subprocess.run(["npm", "--prefix", ROOT / "ui", "run", "build"], check=True)


def build_folder():
    given = os.environ.get("VRAMSCOPE_BUILD")
    if given:
        return Path(given)
    build_user_interface()
    subprocess.run(["cmake", "--preset", "release", "-DVRAMSCOPE_TESTS=OFF"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", "build", "-j", str(os.cpu_count() or 1)], cwd=ROOT, check=True)
    return ROOT / "build"


def native_files():
    """(path, name inside the package)."""
    build = build_folder()
    for name in SHIPPED:
        if not (build / name).exists():
            raise SystemExit(f"wheel: {build / name} is missing; run make build")
        yield build / name, f"vramscope/_bin/{name}"


def stripped(path):
    """The bytes of an ELF file without its debugging information."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(path, folder)
        subprocess.run(["strip", "--strip-debug", copy], check=True)
        return Path(copy).read_bytes()


def metadata():
    readme = (ROOT / "README.md").read_text()
    return ("Metadata-Version: 2.1\nName: vramscope\n" f"Version: {version()}\n"
            "Summary: GPU memory profiler: every byte on the GPU, accounted for\nLicense: Apache-2.0\n"
            "Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n" + readme)


# The second group puts our marks into Lightning's Trainer, the others make pytest and TensorBoard find their plugins.
ENTRY_POINTS = """[console_scripts]
vramscope = vramscope._command:main

[lightning.pytorch.callbacks_factory]
vramscope = vramscope.lightning:callbacks

[pytest11]
vramscope = vramscope.pytest_plugin

[tensorboard_plugins]
vramscope = vramscope.tensorboard_plugin:VramscopePlugin
"""


class Wheel:
    """A wheel under construction; close() adds the record of its files."""

    def __init__(self, folder, tag=TAG):
        self.name = f"vramscope-{version()}-{tag}.whl"
        self.info = f"vramscope-{version()}.dist-info"
        self.archive = zipfile.ZipFile(Path(folder) / self.name, "w", zipfile.ZIP_DEFLATED)
        self.record = []
        self.add(f"{self.info}/METADATA", metadata())
        self.add(f"{self.info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: vramscope\nRoot-Is-Purelib: false\nTag: {tag}\n")
        self.add(f"{self.info}/entry_points.txt", ENTRY_POINTS)
        self.add(f"{self.info}/licenses/LICENSE", (ROOT / "LICENSE").read_text())

    def add(self, name, data, mode=0o644):
        data = data.encode() if isinstance(data, str) else data
        self.write(name, data, mode)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}\n")

    def write(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, DATE)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | mode) << 16
        self.archive.writestr(entry, data)

    def close(self):
        self.record.append(f"{self.info}/RECORD,,\n")
        self.write(f"{self.info}/RECORD", "".join(self.record))
        self.archive.close()
        return self.name


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    natives = list(native_files())
    wheel = Wheel(wheel_directory)
    package = ROOT / "python"
    for path in sorted((package / "vramscope").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            wheel.add(str(path.relative_to(package)), path.read_bytes())
    for path, name in natives:
        wheel.add(name, stripped(path), 0o755)
    return wheel.close()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package is used where it lies, with the program of its build folder."""
    build_folder()
    wheel = Wheel(wheel_directory)
    wheel.add("vramscope.pth", f"{ROOT / 'python'}\n")
    return wheel.close()


def commit():
    """As cmake/build_info.cmake names it."""
    if (ROOT / "commit.txt").exists():  # an unpacked source distribution
        return (ROOT / "commit.txt").read_text().strip()
    return git("describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+changes").strip()


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"wheel: {ROOT}: 'git {arguments[0]}' failed: {done.stderr.strip()}")
    return done.stdout


def build_sdist(sdist_directory, config_settings=None):
    """What git tracks, and what a checkout knows from git: the commit."""
    base = f"vramscope-{version()}"
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in filter(None, git("ls-files", "-z").split("\0")):
            archive.add(ROOT / name, f"{base}/{name}", recursive=False)
        for name, text in (("commit.txt", commit() + "\n"), ("PKG-INFO", metadata())):
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return f"{base}.tar.gz"
