// Which layer's gradient is being computed: maps autograd's nodes to the network layers that created them.
//
// PyTorch numbers the nodes that a thread creates in the forward pass. Whenever memory is allocated there, the current number is
// stored with the current layer. In the backward pass, a node's number leads back to its layer, even on autograd's own threads,
// which run no Python.
#pragma once

#include <cstdint>

#include "capture/torch/library.h"

namespace vramscope::capture::torch {

// The calling thread allocates in the forward pass, inside this layer.
void note_forward(const Library& real, std::uint32_t layer);
// The same for a layer that runs again in the backward pass, which also creates nodes. Ignored unless this is the thread of the
// forward pass: the numbers of different threads cannot be compared.
void note_again(const Library& real, std::uint32_t layer);

struct Backward {
  bool inside = false;
  std::uint32_t op = 0;     // string id: "layer/AddmmBackward0", or the node alone
  std::uint32_t layer = 0;  // the layer that created the node in the forward pass
};
// The autograd node that the calling thread is evaluating.
Backward current_node();
// String id of the part of that layer for which compiled code is running (stacks::Snapshot::part).
std::uint32_t part_of(const Backward& backward, std::uint32_t part);

// Wraps the evaluation of one node (hooks.inc).
void on_evaluate(const Library& real, void* engine, void* task, void* node, void* inputs, void* queue);

}  // namespace vramscope::capture::torch
