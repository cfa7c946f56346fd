// How much memory an answer may use: what the sizes of the traces in question allow (memory_budget.h), and no more.
//
// Counts in a trace are checked where they are used. This is the second line of defense: anything that was overlooked results
// in a one-line error instead of a machine that swaps.
//
// Programs that this one starts inherit the limit. A query is the exception: DuckDB may use what the traces allow, and writes
// what does not fit to disk, up to 16 times as much; the interpreter around it, with the rows to show, may use the same again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace vramscope::cli {

// From now on, this process may use what these traces and those of earlier calls allow. Not for programs that start the user's
// own commands.
void limit_memory(std::span<const std::filesystem::path> traces);

struct QueryLimits {
  std::uint64_t memory, disk;
};
// Raises the limit for the query that is about to be started, and returns what DuckDB may use.
QueryLimits limit_memory_of_query();

}  // namespace vramscope::cli
