"""JAX's own counters, for memory_info in a process that is not recorded."""
