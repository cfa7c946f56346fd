"""Running the programs of this folder plain and recorded."""
import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="session")
def environment(build):
    """What plain and recorded runs of a program share."""
    return {**os.environ, "PYTHONHASHSEED": "0", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "VRAMSCOPE_BUILD": str(build),
            "PYTHONPATH": str(ROOT / "python"), "VRAMSCOPE_DEBUG": "1"}


@pytest.fixture(scope="session")
def measured(environment, vramscope, tmp_path_factory):
    """measured(interpreter, file, mode, *programs, number=0) -> what counted.py prints. All programs of a file run in one process, and the process
    runs once for each number: starting a framework takes seconds.

    Modes: plain; run (`vramscope run`); attached (`vramscope.start()`); holding (attached, with a mistake: the last result is kept).
    """
    kept = {}

    def fresh(python, file, mode, *programs):
        folder = tmp_path_factory.mktemp(mode)
        command = [python, str(HERE / file), *programs]
        added = {}
        if mode == "run":
            command = [str(vramscope), "run", "--quiet", "-o", str(folder / "out"), "--", *command]
        if mode in ("attached", "holding"):
            added["VRAMSCOPE_TEST_ATTACH"] = str(folder / "out")
        if mode == "holding":
            added["VRAMSCOPE_TEST_HOLD"] = "1"
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, cwd=folder, env={**environment, **added})
        assert done.returncode == 0 and "Traceback" not in done.stderr, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert mode == "plain" or list((folder / "out").glob("*.vram")), "nothing was recorded"
        return json.loads(done.stdout.splitlines()[-1])

    def call(python, *rest, number=0):
        key = (number, str(python), *rest)
        if key not in kept:
            kept[key] = fresh(*key[1:])
        return kept[key]

    return call
