"""Cost of a recorded execution of a program of JAX, on a stand-in for its CUDA plugin."""
import re
import subprocess

from measure.tree import Measured

NAMES = ["jax_execute_instructions", "jax_execute_moving_instructions"]
ARGUMENTS = 50


def instructions(tree, executions, state, environment=None):
    folder = tree.build / "bench/micro"
    valgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    command = [*valgrind, folder / "jax_execute", folder / "xla_cuda_plugin_fake.so", str(executions), str(ARGUMENTS), state]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr
    return int(re.search(r"Collected : (\d+)", said).group(1))


def execution_instructions(tree, state, few=100, many=600):
    """Of the recorder alone, for one execution with two allocations, two frees and a batch: set-up is in both runs and cancels out."""
    with tree.preloaded() as environment:
        recorded = instructions(tree, many, state, environment) - instructions(tree, few, state, environment)
    plain = instructions(tree, many, state) - instructions(tree, few, state)
    return (recorded - plain) / (many - few)


def measure(tree):
    return {"jax_execute_instructions": Measured(execution_instructions(tree, "kept")),
            "jax_execute_moving_instructions": Measured(execution_instructions(tree, "moving"))}
