// First pass over a trace: decodes all chunks in parallel and fills the columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/store.h"

namespace vramscope::analyze {

// Where the pass writes. All spans are as long as the trace has events or allocations.
struct Columns {
  std::span<std::uint32_t> birth, death, kind, note;  // note holds the thread until attribution replaces it
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
  Counts counts;
};

Tables scan(const trace::Reader& reader, const Columns& columns, unsigned threads);

}  // namespace vramscope::analyze
