// Steps: told by the program's marks, else found in what repeats, else none with the reason.
#pragma once

#include <string>
#include <vector>

#include "analyze/scan.h"

namespace vramscope::analyze {

// A list of texts with ids; id 0 is the empty one.
class NameTable {
 public:
  std::uint32_t id(std::string_view text);
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_ = {""};
  std::vector<std::pair<std::uint64_t, std::uint32_t>> slots_;  // open addressing: hash, id + 1
  std::size_t used_ = 0;
  void grow();
};

struct StepsFound {
  int source = 0;   // 0 none, 1 told, 2 found
  std::string why;  // where source is 0
  std::vector<StepRow> steps;
};

StepsFound told_steps(const Tables& tables, const trace::Dictionaries& words, std::uint64_t events, std::uint64_t end_us,
                      NameTable& names);

// Looks for ops that allocate exactly once in each step. `main_pools[pool]` says which pools count. Says none rather than
// guess: where the ops do not repeat, where they repeat in a way that has two readings, or where a step would not hold
// each of them exactly once.
StepsFound found_steps(const Tables& tables, const Columns& columns, const trace::Dictionaries& words,
                       const std::vector<std::uint8_t>& main_pools, NameTable& names);

}  // namespace vramscope::analyze
