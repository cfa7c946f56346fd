// Counts of allocations by cohort, for sums over ranges of any length.
#pragma once

#include <vector>

#include "analyze/index/store.h"

namespace vramscope::analyze {

struct CohortTable {
  std::vector<Cohort> cohorts;
  std::vector<std::uint32_t> counts;  // rows of cohorts.size(): one per started block, and one for the end
};
CohortTable count_cohorts(const Store& draft, unsigned threads);

// Allocations of each cohort with ids in [from, to): indexed like store.cohorts. Empty if the index has no such table.
std::vector<std::uint64_t> cohorts_between(const Store& store, std::uint64_t from, std::uint64_t to);

}  // namespace vramscope::analyze
