"""On a real GPU: the category of every block at the steady peak, against what PyTorch and TensorFlow themselves keep it for."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MEANING_TESTS = Path(__file__).resolve().parent.parent / "meaning"
sys.path.insert(0, str(MEANING_TESTS))
import score  # noqa: E402
import tf_truth  # noqa: E402

pytestmark = pytest.mark.gpu
TENSORFLOW = os.environ.get("PYTHON_GPU", sys.executable)
TORCH = os.environ.get("PYTHON_GPU_TORCH", TENSORFLOW)


@pytest.fixture
def scored(vramscope, tmp_path):
    """scored(python, "torch_programs.py", "resnet", "cuda") -> (matrix, wrong blocks): see score.py."""

    def call(python, program, *arguments):
        folder, claims = tmp_path / "out", tmp_path / "claims.json"
        done = subprocess.run([vramscope, "run", "-o", folder, "--quiet", "--", python, MEANING_TESTS / program, *arguments],
                              env={**os.environ, "VRAMSCOPE_TEST_CLAIMS": str(claims), "TF_FORCE_GPU_ALLOW_GROWTH": "true"},
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        trace, = folder.glob("*.vram")
        said = json.loads(claims.read_text())
        return score.score(vramscope, trace, said, tf_truth.accepted(said) if "graphs" in said else score.accepted)

    return call


def check(result, least):
    matrix, wrong = result
    print(score.as_text(matrix))
    assert score.share_judged(matrix) >= 0.9, "the oracle knows too little about this program"
    assert score.share_right(matrix) >= least, "\n".join(map(str, wrong[:20]))


@pytest.mark.parametrize("program", ["resnet", "transformer", "gpt", "lstm", "unet"])
def test_pytorch(program, scored):
    check(scored(TORCH, "torch_programs.py", program, "cuda"), 0.99)


@pytest.mark.parametrize("program", ["resnet", "transformer", "unet", "embedding"])
def test_tensorflow_graph(program, scored):
    check(scored(TENSORFLOW, "tf_programs.py", program), 0.96)


def test_tensorflow_eager(scored):
    check(scored(TENSORFLOW, "tf_programs.py", "cnn", "eager"), 0.95)
