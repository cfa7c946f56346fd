"""Runs out of memory on purpose, in a pool of 96 MiB, and shows what can be read afterwards.

    vramscope run -o runs/oom -- python examples/out_of_memory.py
    vramscope oom runs/oom
"""
import os

os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")   # a CPU then keeps the same statistics as a GPU
os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", "96")

import sys

import tensorflow as tf

for gpu in tf.config.list_physical_devices("GPU")[:1]:
    tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=96)])

import vramscope
import vramscope.tf as vtf

device = vtf.default_device()
kept = []
try:
    while True:
        kept.append(tf.random.normal([4, 1024, 1024]))            # the defect: nothing is freed; 16 MiB each, and more during creation
except tf.errors.ResourceExhaustedError as error:
    info = vramscope.memory_info(device)
    print(f"after {len(kept)} tensors of 16 MiB: {info.current / 2**20:.0f} MiB in use of {info.limit / 2**20:.0f} MiB")
    print(f"TensorFlow says: {str(error).splitlines()[0][:140]}")
    print(f"who holds the first one: {vramscope.who_holds(kept[0])}")
    sys.exit(0 if "--catch" in sys.argv else 1)
