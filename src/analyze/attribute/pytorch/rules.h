// PyTorch's rules of attribution, and the facts that they need.
#pragma once

#include <memory>
#include <optional>

#include "analyze/framework.h"

namespace vramscope::analyze::pytorch {

// Bits of BlockFacts::own.
enum OwnFact : std::uint32_t {
  kSizeOfWorkspace = 1,  // has the size of cuBLAS's workspace
  kWithinNode = 2,       // freed before another op of the backward pass began
  kForNextPass = 4,      // made between two passes by a line that made a reported batch, and alive in the next forward pass
};

namespace rules {
std::optional<Meaning> blas_workspace(const BlockFacts& facts);
std::optional<Meaning> scratch_of_node(const BlockFacts& facts);
std::optional<Meaning> batch_of_loop(const BlockFacts& facts);
std::optional<Meaning> batch(const BlockFacts& facts);
}  // namespace rules

std::unique_ptr<OwnFacts> own_facts(const Store& draft, const Columns& columns, const Scopes& scopes);

}  // namespace vramscope::analyze::pytorch
