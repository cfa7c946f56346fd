"""PyTorch's own counters, and code shared by the callbacks for its training loops."""
