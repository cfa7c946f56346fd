// JAX's rules of attribution, and the facts that they need. Parameters, optimizer state and batches are reported by address.
#pragma once

#include <memory>
#include <optional>

#include "analyze/framework.h"

namespace vramscope::analyze::jax {

// Bits of BlockFacts::own.
enum OwnFact : std::uint32_t {
  kExecuted = 1,  // allocated by a program that XLA runs: its temporaries, and results that take over no argument's block
  kResult = 2,    // an array that a program returned, of a plugin whose temporaries are not recorded
};

namespace rules {
std::optional<Meaning> temporaries_of_program(const BlockFacts& facts);
std::optional<Meaning> results_used_up(const BlockFacts& facts);
}  // namespace rules

// Allocations have the program that runs, and what it is doing: "execute", "result", "compile" or "transfer". Inside a program,
// ops have names (op_names.h).
OpMeaning meaning_of(std::string_view op, std::string_view activity);

std::unique_ptr<OwnFacts> own_facts(const Store& draft, const Columns& columns, const Scopes& scopes);

}  // namespace vramscope::analyze::jax
