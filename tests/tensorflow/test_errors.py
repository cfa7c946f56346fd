"""Keras' and TensorFlow's own error messages and tracebacks: the same with and without recording, to the letter."""
import os
import re

import pytest

from tensorflow_support import HERE

# Names of temporary files and addresses differ from run to run.
VARIES = re.compile(r"__autograph_generated_file\w+|0x[0-9a-f]+")


@pytest.mark.parametrize("version, words", [("2.21", ["unfiltered"]), ("2.16", [])])
def test_errors_read_the_same(run, vramscope, python_with, tmp_path, version, words):
    environment = {**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "CUDA_VISIBLE_DEVICES": "", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    program = [python_with(version), HERE / "error_programs.py", *words]
    plain, recorded = (VARIES.sub("", run([*before, *program], env=environment).stdout).split("=====")
                       for before in ([], [vramscope, "run", "-o", tmp_path / "out", "--quiet", "--"]))
    assert len(plain) == 25 and not [text for text in plain if "no error" in text]
    for theirs, ours in zip(plain, recorded):
        assert ours == theirs
    assert recorded == plain
