// What keeps the blocks of a leak: a container that the Python side saw growing, with the line that adds to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/query/state.h"

namespace vramscope::analyze {

struct Keeper {
  std::string name, container, owner;  // "losses", "list", "global of __main__ (train.py)"
  std::string line;                    // "train.py:31": where tensors are added to it
  std::uint64_t tensors = 0;           // in it when the last examined step ended
  Bytes bytes = 0;
  bool counted = false;                // from the blocks; otherwise as Python last saw it
  std::vector<std::uint64_t> origins;  // origin_key() of its tensors, if they are known
};

// One per container, that with the most bytes first. `rows`: the rows of the leak, if there is one.
std::vector<Keeper> keepers(const Engine::State& state, const std::vector<LeakRow>& rows);

// The one that keeps what grows fastest and has a keeper; nullptr if none does.
const Keeper* main_keeper(const Store& store, const std::vector<Keeper>& keepers, const std::vector<LeakRow>& rows);

// "holds 3 tensors", or "held 3 tensors when last sampled" if the blocks do not show it.
std::string held_text(const Keeper& keeper);

// "losses (train.py:31)"
std::string in_words(const Keeper& keeper);

}  // namespace vramscope::analyze
