"""Source lines: taken while recording, shown from the trace, never from files that the trace names."""
import base64
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

NOBODY = 65534
# A Python that another user may start: the one of the tests can lie in a folder that only root can enter.
PYTHON = next((p for p in ("/usr/bin/python3", sys.executable) if Path(p).exists()), sys.executable)

ALLOCATES = """\
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0

def allocate():
    return cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(11 << 20))  # the marked line

"""


@pytest.fixture
def folder():
    """A folder that every user may write."""
    path = Path(tempfile.mkdtemp(prefix="vramscope-sources-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def record(vramscope, fakegpu, folder):
    """record(program text, options, user) -> the trace"""

    def call(text, *options, user=None):
        script = folder / "train.py"
        script.write_text(text)
        script.chmod(0o644)
        out = folder / f"out-{len(list(folder.iterdir()))}"
        env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(folder / f"state-{user}"), "HOME": str(folder)}
        who = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        done = subprocess.run([str(vramscope), "run", "-q", "-o", str(out), *options, "--", PYTHON, str(script)], env=env, cwd=folder,
                              capture_output=True, text=True, timeout=120, **who)
        assert done.returncode == 0, done.stderr
        return next(out.glob("*.vram"))

    return call


def report_of(vramscope, trace, folder, *options, timeout=60):
    """Everything that is in the report, unpacked."""
    html = folder / "report.html"
    subprocess.run([str(vramscope), "report", str(trace), "-o", str(html), *options], check=True, capture_output=True, timeout=timeout)
    payload = re.search(r'<script id="payload" type="text/plain">([^<]*)', html.read_text())[1]
    return gzip.decompress(base64.b64decode(payload)).decode(errors="replace")


def test_the_lines_are_in_the_trace(vramscope, record, folder):
    trace = record(ALLOCATES + "allocate()\n")
    (folder / "train.py").unlink()
    report = report_of(vramscope, trace, folder)
    assert "# the marked line" in report
    assert "import ctypes, sys" in report


@pytest.mark.parametrize("option", ["--no-source", "--anonymize"])
def test_no_lines_where_they_are_not_wanted(vramscope, record, folder, option):
    trace = record(ALLOCATES + "allocate()\n", option)
    report = report_of(vramscope, trace, folder)
    assert "marked line" not in report
    assert f"recorded with {option}" in report


def hostile(names):
    """A program whose frames claim to be lines of other files."""
    call = "cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(11 << 20))"
    return ALLOCATES + "".join(f"exec(compile({call!r}, {name!r}, 'exec'))\n" for name in names)


def test_a_trace_reveals_no_file_of_its_reader(vramscope, record, folder):
    secret = folder / "secret.py"
    fifo = folder / "fifo.py"
    os.mkfifo(fifo)
    links = {folder / f"{Path(name).name}.py": name for name in ("/etc/passwd", "/etc/shadow", "/proc/self/environ", "/proc/kmsg")}
    for link, name in links.items():
        link.symlink_to(name)
    trace = record(hostile([*links.values(), *map(str, links), str(fifo), str(secret)]))
    secret.write_text("the reader's secret\n")  # it was not there when the program ran
    env_secret = "VIEWER_SECRET=not-for-anybody"
    os.environ.update([env_secret.split("=")])
    try:
        report = report_of(vramscope, trace, folder)
    finally:
        del os.environ["VIEWER_SECRET"]
    assert "shadow.py" in report, "the names themselves are part of the recording"
    for text in ("root:x:0:0", "root:", "not-for-anybody", "the reader's secret"):
        assert text not in report


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_another_users_program_does_not_read_through_the_recorder(vramscope, fakegpu, record, folder):
    """Somebody else's recording, and a recorder with more rights than the program it records."""
    private = folder / "private.py"
    private.write_text("the owner's secret = 1\n" * 3)
    private.chmod(0o600)
    shadow = folder / "shadow.py"
    shadow.symlink_to("/etc/shadow")
    names = [str(shadow), str(private)]
    assert "the owner's secret" not in report_of(vramscope, record(hostile(names), user=NOBODY), folder)
    # Root records; the program gives up its rights on the way.
    drop = f"allocate()\nimport os; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
    report = report_of(vramscope, record(hostile(names).replace(ALLOCATES, ALLOCATES + drop)), folder)
    assert "shadow.py" in report
    assert not [line for line in Path("/etc/shadow").read_text().splitlines() if line in report]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_a_root_shows_only_what_is_below_it(vramscope, record, folder):
    trace = record(hostile(["/a/link.py", "/a/up/there.py", "/etc/passwd", "/a/whole.py"]), "--no-source", user=NOBODY)
    root = folder / "root"
    root.mkdir()
    (root / "link.py").symlink_to("/etc/passwd")
    (folder / "there.py").write_text("outside of it\n")
    (root / "up").symlink_to(folder)
    (root / "whole.py").write_text("this one is meant\n")
    report = report_of(vramscope, trace, folder, "--source-root", str(root))
    assert "root:x:0:0" not in report and "outside of it" not in report
    assert "this one is meant" in report


def test_a_root_that_is_no_folder_is_refused(vramscope, record, folder, run):
    trace = record(ALLOCATES + "allocate()\n")
    for verb in (["report", "-o", folder / "x.html"], ["serve"]):
        done = run([vramscope, *verb, trace, "--source-root", folder / "absent"], code=2)
        assert "--source-root" in done.stderr and len(done.stderr.splitlines()) == 1


def test_recover_keeps_the_lines(vramscope, fakegpu, folder):
    """The recorder is killed; what it had captured stays, and nothing more is read."""
    script = folder / "train.py"
    script.write_text(ALLOCATES + "allocate()\nimport time\nprint('ready', flush=True)\nsys.stdin.readline()\n")
    env = {**os.environ, "LD_LIBRARY_PATH": str(fakegpu), "FAKEGPU_STATE": str(folder / "state")}
    out = folder / "out"
    run = subprocess.Popen([vramscope, "run", "-q", "-o", out, "--", PYTHON, script], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    while not [f for f in out.glob("*.vram") if b"marked" in strings_of(vramscope, f, folder)]:
        assert run.poll() is None
    run.kill()
    run.stdin.close()
    run.stdout.read()  # the program has ended
    run.wait()
    subprocess.run([vramscope, "recover", out], check=True, capture_output=True, timeout=60)
    assert "# the marked line" in report_of(vramscope, next(out.glob("*.vram")), folder)


def strings_of(vramscope, trace, folder):
    html = folder / "growing.html"
    done = subprocess.run([vramscope, "report", trace, "-o", html], capture_output=True, timeout=60)
    if done.returncode not in (0, 2) or not html.exists():
        return b""
    payload = re.search(r'<script id="payload" type="text/plain">([^<]*)', html.read_text())[1]
    return gzip.decompress(base64.b64decode(payload))
