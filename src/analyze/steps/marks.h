// Steps: as reported by the program's marks, otherwise inferred from what repeats, otherwise none, with the reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/index/name_table.h"
#include "analyze/index/scan.h"

namespace vramscope::analyze {

enum class StepSource : std::uint8_t { none, reported, inferred };  // the numbers are those of an index

struct StepsFound {
  StepSource source = StepSource::none;
  std::string why;  // if there is none
  std::vector<StepRow> steps;
};

StepsFound reported_steps(const Tables& tables, const trace::Dictionaries& dictionaries, std::uint64_t events,
                          std::uint64_t end_us, NameTable& names);

// One step for each backward pass, if passes are reported but steps are not.
StepsFound steps_of_passes(const Tables& tables, const trace::Dictionaries& dictionaries, std::uint64_t events,
                           std::uint64_t end_us, NameTable& names);

// Looks for ops that allocate exactly once in each step, in the pools for which `main_pools[pool]` is set. Finds none rather than
// guess: if the ops do not repeat, if their repetition can be read in two ways, or if a step would not contain each of them
// exactly once.
StepsFound inferred_steps(const Tables& tables, const Columns& columns, const trace::Dictionaries& dictionaries,
                          const std::vector<std::uint8_t>& main_pools, NameTable& names);

}  // namespace vramscope::analyze
