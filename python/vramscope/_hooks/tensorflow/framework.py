"""TensorFlow as the Python side knows it. Every Python process of a recorded run reads this (importing.py): constants, no imports."""

WORD = "tensorflow"
NAME = "TensorFlow"
MODULE = "tensorflow"       # while this is imported, the framework is there

# Imported module -> the module of the package whose install(module) is called then.
WATCHED = {"tensorflow": "vramscope._hooks.tensorflow"}
# Finds what was created before the hooks were installed: what_exists().
ADOPT = "vramscope._hooks.tensorflow.adopt"
# Has the framework's own counters: SOURCE.
COUNTERS = "vramscope._tensorflow.stats"
# Of several host pools, the one that its CPU device computes in.
MAIN_HOST_POOL = b"bfc_cpu_allocator_for_gpu"
# Set to 1 before the import, this makes it keep a pool on the host, of the same kind as on a GPU.
HOST_POOL_VARIABLE = "TF_CPU_ALLOCATOR_USE_BFC"
# Folders under site-packages whose code is not the user's.
PACKAGES = ("tensorflow", "tensorflow_estimator", "wrapt", "absl", "optree", "dm_tree", "tree")
