// What tells one trace from another in tables that hold many.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporters/columns.h"

namespace vramscope::exporters {

struct Identity {
  std::string run, host;
  std::int64_t rank = 0;  // 0 if the run is not distributed
};

Identity identity_of(const Request& request);

// For each trace the name of its run, with as much of the path as tells it from the other runs: "run", or "mon/run" and
// "tue/run".
std::vector<std::string> run_names(std::span<const std::filesystem::path> traces);

// A row with the trace that it belongs to. `Content` has the values of the table itself.
template <typename Content>
struct Identified {
  const Identity& trace;
  const Content& of;
};

}  // namespace vramscope::exporters

// The columns that every table begins with.
#define VS_IDENTITY(Row)                                                                                        \
  VS_COLUMN(Row, "run", std::string_view(r.trace.run)), VS_COLUMN(Row, "host", std::string_view(r.trace.host)), \
      VS_COLUMN(Row, "rank", r.trace.rank)
