"""PyTorch as the Python side knows it. Every Python process of a recorded run reads this (importing.py): constants, no imports."""

WORD = "pytorch"
NAME = "PyTorch"
MODULE = "torch"

_LOOPS = (
    "torch._dynamo.convert_frame",
    "torch._dynamo.output_graph",
    "torch._functorch._aot_autograd.runtime_wrappers",
    "torch._inductor.codecache",
    "torch.distributed.distributed_c10d",
    "torch.nn.parallel.distributed",
    "torch.utils.checkpoint",
    "torch.utils.data._utils.worker",
    "torch.distributed.fsdp._fully_shard._fsdp_param_group",
    "lightning.pytorch.trainer.connectors.callback_connector",
    "pytorch_lightning.trainer.connectors.callback_connector",
    "transformers.trainer",
)
WATCHED = {"torch": "vramscope._hooks.torch", **{module: "vramscope._hooks.torch_loops" for module in _LOOPS}}
COUNTERS = "vramscope._torch.stats"
PACKAGES = ("torch", "lightning")
