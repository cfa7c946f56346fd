"""What verbs read and write: inputs that are damaged, foreign, hostile or out of range are refused with one line and exit code 2."""
import os
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("VRAMSCOPE_BUILD", Path(__file__).resolve().parent.parent.parent / "build"))


def tracegen(case, file, *settings):
    subprocess.run([BUILD / "tracegen", case, file, *settings], check=True, capture_output=True)


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    for case in ("clean", "leak", "empty", "one", "hostile"):
        tracegen(case, folder / f"{case}.vram")
    return folder


@pytest.fixture
def folder(generated, tmp_path):
    """A place of its own with links to the generated traces: tests write beside them."""
    for trace in generated.glob("*.vram"):
        (tmp_path / trace.name).write_bytes(trace.read_bytes())
    return tmp_path


def run(folder, *words, timeout=120):
    return subprocess.run([BUILD / "vramscope", *words], cwd=folder, capture_output=True, text=True, timeout=timeout)


def refused(done, *parts):
    """One line, exit code 2, nothing that could be taken for an answer."""
    assert done.returncode == 2, done
    assert done.stdout == "" and done.stderr.count("\n") == 1, done
    for part in parts:
        assert part in done.stderr, done
    return True


# --- a file that is read is never written ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("output", ["clean.vram", "./clean.vram", "symlink.html", "hardlink.html", "run/inside.vram"])
def test_an_input_is_never_overwritten(folder, output):
    (folder / "run").mkdir()
    (folder / "run" / "inside.vram").write_bytes((folder / "clean.vram").read_bytes())
    (folder / "symlink.html").symlink_to("clean.vram")
    os.link(folder / "clean.vram", folder / "hardlink.html")
    (folder / "vram.toml").write_text('peak = "8GiB"\n')
    before = (folder / "clean.vram").read_bytes()
    trace = "run" if output.startswith("run/") else "clean.vram"
    refused(run(folder, "report", trace, "-o", output), output)
    refused(run(folder, "check", trace, "--budget", "vram.toml", "--junit", output), output)
    assert (folder / output).read_bytes() == before


@pytest.mark.parametrize("output", ["vram.toml", "leak.vram"])
def test_check_keeps_its_budget_and_its_baseline(folder, output):
    (folder / "vram.toml").write_text('[baseline]\npeak = "800%"\n')
    words = ["check", "clean.vram", "--budget", "vram.toml", "--baseline", "leak.vram", "--junit"]
    before = (folder / output).read_bytes()
    refused(run(folder, *words, output), output)
    assert (folder / output).read_bytes() == before
    assert run(folder, *words, "result.xml").returncode == 0
    assert "<testsuite" in (folder / "result.xml").read_text()
