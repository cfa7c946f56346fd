"""A framework for the tests: two layers, a ring of batches, and memory that libtoyframe.so counts itself."""
import ctypes
import json
from pathlib import Path

__version__ = "1.5"
_library = ctypes.CDLL(str(Path(__file__).parent / "libtoyframe.so"))
_library.toy_run.restype = ctypes.c_void_p
_library.toy_run.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
_library.toy_drop.argtypes = [ctypes.c_void_p]
for _name in ("toy_in_use", "toy_peak", "toy_allocations"):
    getattr(_library, _name).restype = ctypes.c_size_t


def run(op, bytes):
    return _library.toy_run(op.encode(), bytes)


def drop(block):
    _library.toy_drop(block)


def parameter(name, bytes):
    return run("init", bytes)


def ring(bytes):
    return run("ring", bytes)


def train_step(scale=1):
    kept = [run(f"{layer}/multiply", 1000 * scale) for layer in ("first", "second")]
    gradients = [run(f"{layer}/multiply'", 3000 * scale) for layer in ("second", "first")]
    for block in kept + gradients:
        drop(block)


def counters():
    return {name: getattr(_library, f"toy_{name}")() for name in ("in_use", "peak", "allocations")}


def print_counters():
    print(json.dumps(counters()))
