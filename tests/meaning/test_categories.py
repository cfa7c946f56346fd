"""The category of every block at the steady peak, against what PyTorch and TensorFlow themselves keep it for."""
import score

TORCH = ("mlp", "cnn", "resnet", "transformer", "gpt", "lstm", "unet", "vae", "embedding", "mobilenet", "gan", "accumulation", "manual_sgd", "averaged", "replaced",
         "autocast", "master_copies")
GRAPH = ("mlp", "cnn", "resnet", "transformer", "lstm", "unet", "embedding", "mobilenet", "subclassed", "vae", "gan", "custom_loop", "accumulation",
         "averaged", "mixed", "target_network")
EAGER = ("mlp", "cnn", "transformer", "lstm", "unet", "subclassed", "vae", "gan", "custom_loop")
XLA = ("mlp", "cnn", "resnet", "transformer", "embedding", "unet", "mobilenet", "subclassed", "gan", "vae")


def check(results, least, overall):
    report = score.too_low(results, least, overall)
    assert not report, "\n".join(report)


def test_pytorch(scored, torch_python):
    check(scored(torch_python, "torch_programs.py", "cpu", TORCH), 0.99, 0.99)


# What a forward op makes and no backward op reads is judged by how long it lives, which depends on when TensorFlow's threads free it: two large
# results of the VAE's loss are activations in one run and temporaries in another.
def test_tensorflow_graph(scored, newest_tensorflow):
    check(scored(newest_tensorflow, "tf_programs.py", "graph", GRAPH), 0.96, 0.98)


def test_tensorflow_eager(scored, newest_tensorflow):
    check(scored(newest_tensorflow, "tf_programs.py", "eager", EAGER), 0.95, 0.95)


def test_tensorflow_with_xla(scored, newest_tensorflow):
    """Against the plans of XLA itself."""
    check(scored(newest_tensorflow, "tf_programs.py", "xla", XLA, options=["--xla"]), 0.95, 0.95)
