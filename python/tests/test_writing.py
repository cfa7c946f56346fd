"""Files that the package writes where somebody else may have put a link."""
import pytest

from vramscope import _writing


def test_a_link_is_replaced_and_not_followed(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "chart.svg"
    victim.write_text("mine")
    path.symlink_to(victim)
    _writing.write_text(path, "<svg/>")
    assert victim.read_text() == "mine" and path.read_text() == "<svg/>" and not path.is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["chart.svg", "victim"]


def test_a_growing_file_is_not_opened_through_a_link(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "memory.csv"
    victim.write_text("mine")
    path.symlink_to(victim)
    with pytest.raises(OSError):
        open(path, "w", opener=_writing.open_without_links)
    assert victim.read_text() == "mine"
    path.unlink()
    with open(path, "w", opener=_writing.open_without_links) as file:
        file.write("time\n")
    assert path.read_text() == "time\n"
