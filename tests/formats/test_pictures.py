"""Pictures of a trace: SVG is valid, PNG has its colors, and drawing one runs nothing that lies around."""
import re
import shutil
import sys
import xml.etree.ElementTree as xml

import pytest
from format_cases import CASES
from PIL import Image as image


def python_only(folder):
    """A PATH with Python, and without other programs that draw."""
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    return {"PATH": str(folder)}


@pytest.mark.parametrize("case", CASES)
def test_svg(made, export, case):
    """Valid XML in which the highest point of the areas is at the top of the plot, and the peak is in the title."""
    trace, _ = made(case)
    chart = xml.fromstring(export(trace, "svg").read_text())
    space = "{http://www.w3.org/2000/svg}"
    points = [tuple(map(float, point.split(","))) for area in chart.iter(space + "polygon") for point in area.get("points").split()]
    assert points and min(y for _, y in points) == 40 and max(y for _, y in points) == 380
    assert "GPU 0: live memory, peak" in chart.find(space + "title").text


def test_png(made, vramscope, run, export, missing, tmp_path):
    """Every color of the chart is in the picture, at twice the size; the middle of an area has its color."""
    if not shutil.which("rsvg-convert"):
        missing("rsvg-convert")
    trace, _ = made("leak")
    picture = image.open(export(trace, "png")).convert("RGB")
    assert picture.size == (1920, 840)
    chart = export(trace, "svg").read_text()
    areas = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="12" height="12" fill="#(\w{6})"', chart)
    assert areas
    for x, y, color in areas:
        assert "%02x%02x%02x" % picture.getpixel((int(2 * float(x) + 12), int(2 * float(y) + 12))) == color


def test_png_runs_nothing_from_the_folder_it_is_called_in(made, vramscope, run, tmp_path):
    """The folder may be an unpacked archive; `python -m` and `python -c` look there first for what they import."""
    trace, _ = made("leak")
    folder = tmp_path / "archive"
    folder.mkdir()
    for module in ("cairosvg", "cairocffi", "runpy", "argparse", "pkgutil", "importlib"):
        (folder / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({module!r})\n")
    run([vramscope, "export", trace, "--to", "png", "-o", "x.png"], code=None, cwd=folder, env=python_only(tmp_path / "bin"))
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_png_is_drawn_by_the_installed_cairosvg(made, vramscope, run, tmp_path):
    """A module that stands in for it takes its arguments and leaves a picture."""
    trace, _ = made("leak")
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "cairosvg.py").write_text(
        "import sys\n"
        "scale, value, output, png, svg = sys.argv[1:]\n"
        "assert __name__ == '__main__' and (scale, value, output) == ('--scale', '2', '--output') and '<svg' in open(svg).read()\n"
        "open(png, 'wb').write(b'\\x89PNG drawn')\n")
    env = {**python_only(tmp_path / "bin"), "PYTHONPATH": str(tmp_path / "installed")}
    run([vramscope, "export", trace, "--to", "png", "-o", tmp_path / "x.png"], env=env)
    assert (tmp_path / "x.png").read_bytes() == b"\x89PNG drawn"


def test_png_without_a_program_that_draws(made, vramscope, run, tmp_path):
    trace, _ = made("leak")
    done = run([vramscope, "export", trace, "--to", "png", "-o", tmp_path / "x.png"], code=2, env={"PATH": str(tmp_path)})
    assert "rsvg-convert" in done.stderr and done.stderr.count("\n") == 1 and list(tmp_path.iterdir()) == []
