"""vramscope.jax: what a program needs, and its counters. On JAX's own CPU device."""
import json
import os
import subprocess

ESTIMATE = """
import json
import jax, jax.numpy as jnp
import vramscope.jax

width, batch = 256, 64
params = {"w": jax.ShapeDtypeStruct((width, width), jnp.float32), "b": jax.ShapeDtypeStruct((width,), jnp.float32)}
x = jax.ShapeDtypeStruct((batch, width), jnp.float32)

def step(params, x):
    gradients = jax.grad(lambda params: jnp.tanh(x @ params["w"] + params["b"]).sum())(params)
    return jax.tree.map(lambda p, g: p - g, params, gradients)

plain = vramscope.jax.estimate(step, params, x)
donated = vramscope.jax.estimate(jax.jit(step, donate_argnums=0), params, x)
print(json.dumps({"plain": plain._asdict() | {"total": plain.total}, "donated": donated._asdict() | {"total": donated.total}, "text": str(donated)}))
"""


def call(jax_python, root, code, **env):
    done = subprocess.run([jax_python, "-c", code], env={**os.environ, "PYTHONPATH": str(root / "python"), "JAX_PLATFORMS": "cpu", **env},
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_estimate_counts_arguments_outputs_and_what_is_donated(jax_python, root):
    said = call(jax_python, root, ESTIMATE)
    state, x = 4 * (256 * 256 + 256), 4 * 64 * 256
    table = 8 * 2       # the CPU returns two results through a table of pointers
    plain, donated = said["plain"], said["donated"]
    assert plain["arguments"] == donated["arguments"] == state + x
    assert plain["outputs"] - state in (0, table) and donated["outputs"] - state in (0, table)
    assert (plain["aliased"], donated["aliased"]) == (0, state)
    assert plain["temporaries"] >= x, "the result of the forward pass is kept for the backward pass"
    assert plain["total"] - donated["total"] == state + plain["temporaries"] - donated["temporaries"]
    assert said["text"].startswith(f"{donated['total'] / 1024:.1f} KiB: {(state + x) / 1024:.1f} KiB of arguments, "), said["text"]


def test_memory_info_does_not_start_jax(jax_python, root):
    said = call(jax_python, root, """
import json, jax, vramscope.jax
from jax._src import xla_bridge
from vramscope._jax.stats import SOURCE
devices = SOURCE.devices()
print(json.dumps({"devices": len(devices), "started": bool(xla_bridge._backends)}))
""")
    assert said == {"devices": 0, "started": False}
