"""The category of every block at the steady peak, against what PyTorch and TensorFlow themselves keep it for."""
import pytest

import score

TORCH = ("mlp", "cnn", "resnet", "transformer", "gpt", "lstm", "unet", "vae", "embedding", "mobilenet", "gan", "accumulation", "manual_sgd")
GRAPH = ("mlp", "cnn", "resnet", "transformer", "lstm", "unet", "embedding", "mobilenet", "subclassed", "vae", "gan", "custom_loop")
EAGER = ("mlp", "cnn", "transformer", "vae", "custom_loop")
XLA = ("mlp", "cnn")
# The least share of bytes that must be right. What a forward op makes and no backward op reads is judged by how long it lives, which depends on
# when TensorFlow's threads free it: two large results of the VAE's loss are activations in one run and temporaries in another.
LEAST_GRAPH = dict.fromkeys(GRAPH, 0.96)


def check(result, least):
    matrix, wrong = result
    print(score.as_text(matrix))
    assert score.share_judged(matrix) >= 0.9, "the oracle knows too little about this program"
    assert score.share_right(matrix) >= least, "\n".join(map(str, wrong[:20]))


@pytest.mark.parametrize("program", TORCH)
def test_pytorch(program, scored, torch_python):
    check(scored(torch_python, "torch_programs.py", program), 0.99)


@pytest.mark.parametrize("program", GRAPH)
def test_tensorflow_graph(program, scored, newest_tensorflow):
    check(scored(newest_tensorflow, "tf_programs.py", program), LEAST_GRAPH[program])


@pytest.mark.parametrize("program", EAGER)
def test_tensorflow_eager(program, scored, newest_tensorflow):
    check(scored(newest_tensorflow, "tf_programs.py", program, "eager"), 0.95)


@pytest.mark.parametrize("program", XLA)
def test_tensorflow_with_xla(program, scored, newest_tensorflow):
    """Against the plans of XLA itself."""
    check(scored(newest_tensorflow, "tf_programs.py", program, "xla", options=["--xla"]), 0.95)
