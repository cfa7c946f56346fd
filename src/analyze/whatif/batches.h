// Which batch size each of several recordings has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

// The one number in which the commands of the recordings differ; otherwise what their shapes say. An error names what to do.
Result<std::vector<std::uint64_t>> batches_of(std::span<const Engine* const> runs, std::span<const RecordedPool> recorded,
                                              std::span<const std::string> names);

}  // namespace vramscope::analyze
