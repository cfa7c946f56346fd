// Whose gradient is being computed: autograd's nodes, and the network layers that made them.
//
// PyTorch numbers the nodes that a thread makes during forward. Which layer was at work at which number is noted when memory is
// allocated there; in backward a node's number leads back to its layer, also on autograd's own threads, which run no Python.
#pragma once

#include <cstdint>

#include "capture/torch/library.h"

namespace vramscope::capture::torch {

// The calling thread allocates in forward, inside this layer.
void note_forward(const Library& real, std::uint32_t layer);
// The same, where a layer runs again during backward: nodes are made then as well. Only if this is the thread of the forward
// pass; the numbers of others mean nothing beside its own.
void note_again(const Library& real, std::uint32_t layer);

struct Backward {
  bool inside = false;
  std::uint32_t op = 0;     // string id: "layer/AddmmBackward0", or the node alone
  std::uint32_t layer = 0;  // the layer that made the node in forward
};
// The autograd node that the calling thread evaluates right now.
Backward current_node();
// String id of a part of that layer, for which compiled code works (stacks::Snapshot::part).
std::uint32_t part_of(const Backward& backward, std::uint32_t part);

}  // namespace vramscope::capture::torch
