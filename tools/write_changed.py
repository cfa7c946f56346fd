"""What the generators that the build runs have in common."""
from pathlib import Path


def write_changed(folder, files):
    """Writes {path: text} into the folder. A file that stays the same keeps its date, so that nothing is built again for it."""
    for name, text in files.items():
        path = Path(folder) / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
