"""Programs for JAX on the CPU plugin. Each prints what is true as JSON on the last line.

    cpu_programs.py donated|kept|recompiled|same_names|two_networks|reported_steps|two_plugins|nnx|nnx_donated|
                    gradients_apart|gradients_apart_donated|pmapped
"""
import ctypes
import gc
import json
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 6
NAMES = {"dense_0": ("kernel", "bias"), "dense_1": ("kernel", "bias")}


def parameters():
    return jax.device_put({name: {"kernel": np.full((32, 32), 0.01, np.float32), "bias": np.zeros(32, np.float32)} for name in NAMES})


def forward(params, x):
    for name in NAMES:
        x = jnp.tanh(x @ params[name]["kernel"] + params[name]["bias"])
    return x


def make_step(donate):
    @partial(jax.jit, donate_argnums=donate)
    def train_step(params, opt_state, batch):
        loss, gradients = jax.value_and_grad(lambda params: jnp.mean((forward(params, batch) - 1) ** 2))(params)
        opt_state = jax.tree.map(lambda m, g: 0.9 * m + g, opt_state, gradients)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, opt_state), opt_state, loss

    return train_step


def leaves(tree, root):
    return {root + jax.tree_util.keystr(path): leaf.unsafe_buffer_pointer() for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def batch(rows=8):
    return jax.device_put(np.ones((rows, 32), np.float32))


def train(donate):
    params, opt_state, step, seen = parameters(), jax.device_put(jax.tree.map(np.zeros_like, parameters())), make_step(donate), []
    for _ in range(STEPS):
        x = batch()
        seen.append({**leaves(params, "params"), **leaves(opt_state, "opt_state"), "batch": x.unsafe_buffer_pointer()})
        params, opt_state, loss = step(params, opt_state, x)
        loss.block_until_ready()
    return {"steps": STEPS, "addresses": seen, "live": live_bytes()}


def live_bytes(*platforms):
    """What JAX itself counts, at the mark "end" of the trace. An array and its shard are two objects with one memory."""
    gc.collect()
    process = ctypes.CDLL(None)
    if hasattr(process, "vramscope_check"):
        process.vramscope_check(b"end")
    return sum({array.unsafe_buffer_pointer(): array.nbytes for platform in platforms or [None] for array in jax.live_arrays(platform)}.values())


def two_plugins():
    """The same plugin under another name is another plugin: its own table, its own devices."""
    step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: jnp.tanh(x @ w).sum())(w))
    devices = [jax.devices(name)[0] for name in ("xla_cpu", "second")]
    state = {device: jax.device_put(np.ones((256, 256), np.float32), device) for device in devices}
    for _ in range(STEPS):
        for device in devices:
            state[device] = step(state[device], jax.device_put(np.ones((8, 256), np.float32), device))
    jax.block_until_ready(list(state.values()))
    return {"steps": STEPS, "platforms": sorted(device.platform for device in devices), "live": live_bytes("xla_cpu", "second")}


def donated():
    return train((0, 1))


def kept():
    return train(())


def recompiled():
    params, opt_state, step = parameters(), jax.device_put(jax.tree.map(np.zeros_like, parameters())), make_step((0, 1))
    for i in range(STEPS):
        params, opt_state, loss = step(params, opt_state, batch(8 + i))
    loss.block_until_ready()
    return {"steps": STEPS}


def static_values():
    """A number that the function is compiled for, given by name and by position, and an object."""
    class Settings:
        pass

    @partial(jax.jit, static_argnames=("rate", "settings"))
    def scaled(x, rate, settings=None):
        return x * rate

    for i in range(9):
        scaled(np.ones(8, np.float32), 0.5 + i) if i % 2 else scaled(np.ones(8, np.float32), rate=0.5 + i)      # compiled
    out = {"times": scaled._cache_size()}
    for i in range(3):
        scaled(np.ones(8, np.float32), 0.5, Settings())     # compiled for objects
    return out


def same_names():
    """Functions with one name that are compiled once each, an op for many shapes, and one function that is made again each time."""
    x = np.ones(8, np.float32)
    for function in (jax.jit(lambda x: x + 1),
                     jax.jit(lambda x: x * 2),
                     jax.jit(lambda x: x - 3),
                     jax.jit(lambda x: x / 4),
                     jax.jit(lambda x: x ** 2),
                     jax.jit(lambda x: x % 5)):
        x = function(x)
    for rows in range(1, STEPS + 1):
        jnp.where(np.ones(rows, bool), 1.0, 2.0)

    def again(x):
        return x + 1

    for _ in range(STEPS):
        x = jax.jit(lambda x: again(x) * 3)(x)      # made again
    return {"times": STEPS}


def nnx(donate=()):
    """A model whose layers have the names of other things, an optimizer, and counters that the step updates in place."""
    import optax
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.List([nnx.Linear(64, 64, rngs=rngs) for _ in range(2)])
            self.key = nnx.Linear(64, 64, rngs=rngs)
            self.norm = nnx.BatchNorm(64, rngs=rngs)
            self.dropout = nnx.Dropout(0.1, rngs=rngs)

        def __call__(self, x):
            for layer in self.layers:
                x = jnp.tanh(layer(x))
            return self.dropout(self.norm(self.key(x)))

    @partial(nnx.jit, donate_argnames=donate)
    def train_step(model, optimizer, metrics, batch):
        loss, gradients = nnx.value_and_grad(lambda model: (model(batch) ** 2).mean())(model)
        metrics.update(loss=loss)
        optimizer.update(model, gradients)

    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))
    for _ in range(STEPS):
        train_step(model, optimizer, metrics, np.ones((8, 64), np.float32))

    def sizes(module, kind):
        return {"".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path): variable[...].nbytes
                for path, variable in nnx.to_flat_state(nnx.state(module, kind))}

    return {"steps": STEPS, "parameter": sizes(model, nnx.Param), "batch_stats": sizes(model, nnx.BatchStat), "optimizer_state": sizes(optimizer, nnx.OptState)}


def nnx_donated():
    return nnx(("model", "optimizer", "metrics"))


def gradients_apart(donate=()):
    """Programs that compute gradients of parameters, which their caller still needs, and programs that return the next parameters."""
    def loss(params, x):
        return forward(params, x).mean()

    def gradients_of_batches(params, batches):
        return jax.lax.scan(lambda sum, x: (jax.tree.map(jnp.add, sum, jax.grad(loss)(params, x)), None),
                            jax.tree.map(jnp.zeros_like, params), batches)[0]

    def gradients_of_examples(params, x):
        return jax.tree.map(lambda g: g.mean(0), jax.vmap(jax.grad(loss), (None, 0))(params, x))

    def next_of(params, gradients):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    def apply(params, gradients):
        return next_of(params, gradients)

    def accumulate(params, batches):
        return next_of(params, gradients_of_batches(params, batches))

    def epoch(params, batches):
        return jax.lax.scan(lambda params, x: (next_of(params, jax.grad(loss)(params, x)), None), params, batches)[0]

    programs = {function.__name__: jax.jit(function, donate_argnames="params" if function.__name__ in donate else ())
                for function in (jax.value_and_grad(loss), gradients_of_batches, gradients_of_examples, apply, accumulate, epoch)}
    params = jax.device_put({name: {"kernel": jnp.full((128, 128), 0.01), "bias": jnp.zeros(128)} for name in NAMES})
    x, batches = np.ones((8, 128), np.float32), np.ones((2, 8, 128), np.float32)
    for _ in range(STEPS):
        _, gradients = programs["loss"](params, x)
        gradients = jax.tree.map(jnp.add, gradients, programs["gradients_of_batches"](params, batches))
        gradients = jax.tree.map(jnp.add, gradients, programs["gradients_of_examples"](params, x))
        for name, second in (("apply", gradients), ("accumulate", batches), ("epoch", batches)):
            params = programs[name](params, second)
    jax.block_until_ready(params)
    return {"steps": STEPS, "updates": ["accumulate", "apply", "epoch"], "bytes": sum(leaf.nbytes for leaf in jax.tree.leaves(params))}


def gradients_apart_donated():
    return gradients_apart(("accumulate", "apply", "epoch"))


def pmapped():
    """State that is stacked, with one part for each device."""
    devices = jax.local_device_count()

    @partial(jax.pmap, axis_name="device")
    def train_step(params, momentum, batch, rate=0.1):
        gradients = jax.lax.pmean(jax.grad(lambda params: forward(params, batch).mean())(params), "device")
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return jax.tree.map(lambda p, m: p - rate * m, params, momentum), momentum

    params = jax.tree.map(lambda leaf: jnp.stack([leaf] * devices), parameters())
    momentum = jax.tree.map(jnp.zeros_like, params)
    for _ in range(STEPS):
        params, momentum = train_step(params, momentum, np.ones((devices, 8, 32), np.float32), rate=np.full(devices, 0.1, np.float32))
    jax.block_until_ready(params)
    return {"steps": STEPS, "devices": devices}


def two_networks():
    """Gradients that were computed once before the loop, and two networks that take turns."""
    warm_up = jax.jit(jax.grad(lambda params, x: forward(params, x).sum()))
    jax.block_until_ready(warm_up(parameters(), batch()))
    generator, critic = parameters(), parameters()

    @jax.jit
    def train_generator(params, x):
        return jax.tree.map(jnp.subtract, params, jax.grad(lambda p: forward(p, x).sum())(params))

    @jax.jit
    def train_critic(params, x):
        return jax.tree.map(jnp.add, params, jax.grad(lambda p: forward(p, x).mean())(params))

    for _ in range(STEPS):
        generator = train_generator(generator, batch())
        critic = train_critic(critic, batch())
    jax.block_until_ready((generator, critic))
    return {"steps": STEPS}


def reported_steps():
    import vramscope
    params, opt_state, step = parameters(), jax.device_put(jax.tree.map(np.zeros_like, parameters())), make_step((0, 1))
    for i in range(STEPS // 2):
        vramscope.step(i)
        for _ in range(2):
            params, opt_state, loss = step(params, opt_state, batch())
    loss.block_until_ready()
    return {"steps": STEPS // 2}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
