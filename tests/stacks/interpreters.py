"""The Pythons of this machine."""
import glob
import os
import re
import subprocess
import sys


def pythons():
    """One interpreter for each version from 3.9 on: the one that runs this test, those on PATH, those of pyenv."""
    found = {}
    candidates = [sys.executable]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidates += sorted(glob.glob(os.path.join(folder, "python3.[0-9]*")))
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))
    for path in candidates:
        if not re.search(r"python[0-9.]*$", path):
            continue
        probe = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
        version = probe.stdout.strip()
        if probe.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 9):
            found.setdefault(version, path)
    return sorted(found.items(), key=lambda item: tuple(map(int, item[0].split("."))))
