// Bytes by call stack: what pprof, speedscope, collapsed stacks and Perfetto show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/block_rows.h"
#include "exporters/format.h"

namespace vramscope::exporters {

// Blocks of one place with the same stack, op, category, layer and dtype.
struct StackSum {
  std::vector<std::uint32_t> frames;  // indices into StackSums::frames, innermost first
  std::string_view category, layer, dtype;
  std::uint64_t allocated_count = 0, allocated_bytes = 0;  // in the whole trace
  std::uint64_t live_count = 0, live_bytes = 0;            // at the instant of the request
};

struct StackFrame {
  std::string function, file;
  std::uint64_t line = 0;
};

struct StackSums {
  std::string place;
  analyze::Moment at = 0;
  std::uint64_t at_us = 0;
  std::vector<StackFrame> frames;
  std::vector<StackSum> sums;  // in order of their first block
};

// The innermost frame is the op, where there is one: in a graph, blocks of many ops share one Python stack. The views in the sums
// are valid as long as `rows`.
Result<StackSums> stack_sums(const Request& request, analyze::BlockRows& rows);

}  // namespace vramscope::exporters
