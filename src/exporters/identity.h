// What tells one trace from another in tables that hold many.
#pragma once

#include <string>
#include <string_view>

#include "exporters/columns.h"

namespace vramscope::exporters {

struct Identity {
  std::string run, host;
  std::int64_t rank = 0;  // 0 if the run is not distributed
};

Identity identity_of(const Request& request);

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
