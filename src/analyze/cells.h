// Counts of allocations by cell, for sums over ranges of any length.
#pragma once

#include <vector>

#include "analyze/store.h"

namespace vramscope::analyze {

struct CellTable {
  std::vector<Cell> cells;
  std::vector<std::uint32_t> counts;  // rows of cells.size(): one for each started block, and one for the end
};
CellTable count_cells(const Store& draft, unsigned threads);

// Allocations of each cell with ids in [from, to): index as store.cells. Empty where the index has no such table.
std::vector<std::uint64_t> cells_between(const Store& store, std::uint64_t from, std::uint64_t to);

}  // namespace vramscope::analyze
