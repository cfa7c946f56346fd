// First pass over a trace: decodes all chunks in parallel and fills the columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/index/store.h"
#include "support/memory_budget.h"

namespace vramscope::analyze {

// Where the pass writes. All spans are as long as the trace has events or allocations.
struct Columns {
  std::span<std::uint32_t> birth, death, kind, attributes;  // `attributes` holds the thread until attribution replaces it
  std::span<std::uint64_t> address;
  std::span<std::uint32_t> ref, tick;
};

// Everything that is not a column, in the order of the trace.
struct Tables {
  std::vector<ChunkRow> chunks;
  std::vector<Kind> kinds;  // site, pool, sizes only
  std::vector<Stamped<trace::Region>> regions;
  std::vector<Stamped<trace::Mark>> marks;
  std::vector<Stamped<trace::Tag>> tags;
  std::vector<Stamped<trace::Stats>> stats;
  std::vector<Stamped<trace::Oom>> ooms;
  std::vector<Stamped<trace::DeviceSample>> device_samples;
  std::vector<Stamped<trace::HostSample>> host_samples;
  std::vector<Stamped<trace::Setting>> settings;
  std::vector<Stamped<trace::Lost>> lost;
  std::vector<Stamped<trace::Context>> contexts;
  std::vector<Stamped<trace::Totals>> totals;
  std::vector<Stamped<trace::Omitted>> omitted;
  std::vector<trace::Report> reports;
  std::vector<std::uint64_t> unmatched_frees;  // by pool
  Counts counts;
};

// An error if the rows need more memory than is left in `memory`.
Result<Tables> scan(const trace::Reader& reader, const Columns& columns, unsigned threads, support::MemoryBudget& memory);

// The error for a file that claims to contain more than a recording of its size can.
std::unexpected<Error> asks_for_too_much(const trace::Reader& reader);

}  // namespace vramscope::analyze
