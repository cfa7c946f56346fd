"""who_holds() where it is needed most: after an error that says out of memory, which the program has caught. Twenty times each."""
import pytest

TORCH = """
import gc, sys, weakref
import torch
import vramscope

TOO_MUCH = 1 << 50
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU())

class NeedsMuch(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * 2.0

    @staticmethod
    def backward(context, upstream):
        return upstream * torch.empty(TOO_MUCH).sum()

class Greedy(torch.nn.Module):
    def forward(self, x):
        return x + torch.empty(TOO_MUCH)

def in_an_op(batch):
    torch.empty(TOO_MUCH)

def in_backward(batch):
    NeedsMuch.apply(model(batch)).sum().backward()

def in_a_layer(batch):
    torch.nn.Sequential(model, Greedy())(batch)

def in_a_hook(batch):
    handle = model.register_forward_hook(lambda module, inputs, output: torch.empty(TOO_MUCH))
    try:
        model(batch)
    finally:
        handle.remove()

gc.disable()
for number in range(20):
    batch = torch.randn(256, 256)
    try:
        (in_an_op, in_backward, in_a_layer, in_a_hook)[number % 4](batch)
        raise AssertionError("there was memory")
    except RuntimeError as error:
        sys.last_exc = sys.last_value = error
        assert "batch, global of __main__" in str(vramscope.who_holds(batch))
    assert "batch, global of __main__" in str(vramscope.who_holds(batch.data_ptr()))
    alive = weakref.ref(batch)
    del batch, sys.last_exc, sys.last_value
    assert alive() is None, number
"""


def test_torch(run_python, torch_python):
    run_python(torch_python, TORCH, record=True)


DRIVER = """
import ctypes, sys, weakref
import vramscope

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0

def free():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value

class Block:
    def __init__(self):
        self.address = ctypes.c_uint64()
        code = cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(64 << 20))
        if code:
            self.address.value = 0
            raise MemoryError(code)

    def __del__(self):
        if self.address.value:
            cuda.cuMemFree_v2(self.address)

def fill(blocks):
    while True:
        blocks.append(Block())

before = free()
for _ in range(20):
    blocks = []
    try:
        fill(blocks)
    except MemoryError as error:
        sys.last_exc = sys.last_value = error
        assert error.args == (2,) and len(blocks) > 2
        assert "blocks[1], global of __main__" in str(vramscope.who_holds(blocks[1]))
    assert str(vramscope.who_holds(blocks[0].address.value)) == "no Python object holds it"         # no framework's tensor lies there
    alive = weakref.ref(blocks[1])
    del blocks, sys.last_exc, sys.last_value
    assert alive() is None and free() == before
"""


def test_driver(run_python, this_python, build):
    folder = build / "tests/fakegpu"
    if not (folder / "libcuda.so.1").exists():
        pytest.skip("the fake driver is not built")
    run_python(this_python, DRIVER, record=True, env={"LD_LIBRARY_PATH": str(folder), "FAKEGPU_MEMORY": str(1 << 30)})
