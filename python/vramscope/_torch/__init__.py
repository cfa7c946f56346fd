"""PyTorch's own counters, and what the callbacks for its training loops share."""
