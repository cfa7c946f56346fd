// What the Python side saw and allocations cannot show: settings called fact.KIND.KEY, each a flat JSON object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/store.h"

namespace vramscope::analyze {

struct ToldFact {
  std::string json;

  std::string text(std::string_view member) const;  // "" where there is none
  std::uint64_t number(std::string_view member) const;
  std::string line() const;  // "train.py:31"
};

// One for each key, its newest value.
std::vector<ToldFact> told_facts(const Store& store, std::string_view kind);

}  // namespace vramscope::analyze
