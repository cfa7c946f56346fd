"""The man pages: one per verb, accepted by groff without a warning, and with everything that --help says."""
import shutil
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def pages(root, vramscope, tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, root / "tools/gen_man.py", vramscope, folder], check=True, capture_output=True)
    return folder


def test_every_verb_has_a_page(pages, root):
    verbs = {path.stem for path in (root / "src/cli/verbs").glob("*.cpp")}
    assert {path.name for path in pages.iterdir()} == {"vramscope.1", *(f"vramscope-{verb}.1" for verb in verbs)}


def test_pages_say_what_the_help_says(pages, run, vramscope):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    for path in pages.iterdir():
        shown = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou", path], capture_output=True, text=True)
        assert shown.returncode == 0 and shown.stderr == "", (path.name, shown.stderr)
        words = path.stem.split("-")[1:]
        wanted = " ".join(run([vramscope, *words, "--help"]).stdout.split())
        seen = "".join(shown.stdout.split()).replace("\u2010", "")
        for option in {word for word in wanted.split() if word.startswith("--")}:
            assert option.strip(",.;'\"()[]").replace("\u2010", "") in seen, (path.name, option)
