"""`run --xla` and `xla` with JAX: what fills the block of a program's temporaries, by the scopes that the program has named."""
import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


def test_temporaries_have_layers_and_lifetimes(vramscope, run, jax_python, tmp_path):
    folder = tmp_path / "out"
    run([vramscope, "run", "--xla", "-o", folder, "--quiet", "--", jax_python, HERE / "models.py", "mlp", "2"],
        env={**os.environ, "JAX_PLATFORMS": "cpu"})
    blocks = json.loads(subprocess.check_output([vramscope, "xla", "--json", folder]))["blocks"]
    block = max((block for block in blocks if block["module"] == "jit_train_step"), key=lambda block: block["bytes"])
    parts = block["parts"]
    assert block["bytes"] == sum(part["bytes"] for part in parts) + block["unused"]
    assert block["instructions"] > 50 and 0 < block["fullest"] < block["instructions"]
    assert all(part["from"] <= block["fullest"] <= part["to"] for part in parts)
    known = [part for part in parts if part["layer"]]
    assert {part["layer"] for part in known} <= {f"dense_{i}" for i in range(6)}
    assert sum(part["bytes"] for part in known) >= 0.9 * sum(part["bytes"] for part in parts), parts
