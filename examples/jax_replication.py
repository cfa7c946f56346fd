"""Parameters without a sharding are copied to every device. With "fixed", they are divided among the devices.

    JAX_NUM_CPU_DEVICES=4 vramscope run -o runs/replication -- python examples/jax_replication.py
    vramscope summary runs/replication
"""
import sys

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

FIXED = "fixed" in sys.argv
mesh = Mesh(jax.devices(), ("data",))
spread, copied = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())


def train_step(params, opt_state, batch):
    gradients = jax.grad(lambda params: jnp.tanh(batch @ params["dense"]["kernel"]).mean())(params)
    opt_state = jax.tree.map(lambda m, g: 0.9 * m + g, opt_state, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, opt_state), opt_state


state = spread if FIXED else copied
train_step = jax.jit(train_step, donate_argnames=("params", "opt_state"), out_shardings=(state, state))
params = jax.device_put({"dense": {"kernel": jnp.ones((1024, 1024))}}, state)       # the defect: every device holds all of it
opt_state = jax.tree.map(jnp.zeros_like, params)
batch = jax.device_put(jnp.ones((64, 1024)), spread)
for _ in range(5):
    params, opt_state = train_step(params, opt_state, batch)
jax.block_until_ready(params)
shard = params["dense"]["kernel"].addressable_shards[0].data
print(f"{len(jax.devices())} devices; each holds {shard.nbytes / 2**20:.1f} MiB of the kernel's {params['dense']['kernel'].nbytes / 2**20:.1f} MiB")
