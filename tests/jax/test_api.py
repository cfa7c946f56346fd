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


def test_memory_info_without_counters_speaks_of_jax(jax_python, root):
    said = call(jax_python, root, """
import json, jax, vramscope.jax
try:
    vramscope.jax.memory_info(jax.devices()[0])
except ValueError as error:
    print(json.dumps(str(error)))
""")
    assert said == "Allocator stats not available for device 'CPU:0'; record with 'vramscope run'"


NOT_RECORDED = """
import json, jax, vramscope.jax
jax.devices()
try:
    vramscope.jax.memory_info("CPU:0")
except ValueError as error:
    print(json.dumps(str(error)))
"""


def test_memory_info_in_a_recording_does_not_ask_for_one(jax_python, vramscope, run, tmp_path):
    done = run([vramscope, "run", "-o", tmp_path / "out", "--", jax_python, "-c", NOT_RECORDED], env={**os.environ, "JAX_PLATFORMS": "cpu"})
    assert json.loads(done.stdout.splitlines()[-1]) == "Allocator stats not available for device 'CPU:0'; its memory is not recorded"


def test_memory_info_knows_the_devices_of_plugins(jax_python, vramscope, run, plugin_environment, tmp_path):
    """Whatever a plugin calls its devices. The counter is that of the arrays that JAX has."""
    done = run([vramscope, "run", "-o", tmp_path / "out", "--", jax_python, "-c", """
import json, jax, numpy, vramscope.jax
array = jax.device_put(numpy.ones((512, 512), numpy.float32))
info = vramscope.jax.memory_info(jax.devices()[0])
print(json.dumps({"current": info.current, "live": sum(one.nbytes for one in jax.live_arrays())}))
"""], env=plugin_environment)
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["current"] == said["live"] == 512 * 512 * 4


def test_doctor_does_not_deny_that_jax_was_found(jax_python, vramscope, run):
    said = run([vramscope, "doctor", "--python", jax_python], code=None).stdout
    assert "JAX" in said and "No framework was found;" not in said, said


def test_remat_saving_is_the_difference_to_a_program_without_it(jax_python, root):
    said = call(jax_python, root, """
import json, jax, jax.numpy as jnp
import vramscope.jax

def layer(w, x):
    return jnp.tanh(jnp.sin(x @ w))

def make(layer):
    def loss(ws, x):
        return jax.lax.scan(lambda x, w: (layer(w, x), None), x, ws)[0].sum()       # in a loop, XLA cannot undo it
    return jax.jit(lambda ws, x: ws - jax.grad(loss)(ws, x))

arguments = jax.ShapeDtypeStruct((8, 64, 64), jnp.float32), jax.ShapeDtypeStruct((4096, 64), jnp.float32)
plain = vramscope.jax.estimate(make(layer), *arguments)
step = make(jax.jit(jax.checkpoint(layer)))                     # also inside of another function that JAX caches
saving = vramscope.jax.remat_saving(step, *arguments)
again = vramscope.jax.estimate(step, *arguments)
print(json.dumps({"plain": plain.total, "now": saving.now.total, "without": saving.without.total, "again": again.total, "text": str(saving)}))
""")
    array = 4096 * 64 * 4
    assert said["plain"] - said["now"] >= 7 * array, "eight layers, of which each keeps at least one value more without jax.checkpoint"
    assert abs(said["without"] - said["plain"]) <= array, said
    assert said["again"] == said["now"], "the program itself is as it was"
    assert said["text"].startswith("jax.checkpoint saves "), said["text"]
