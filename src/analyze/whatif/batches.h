// Which batch size each of several recordings has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analyze/whatif/recorded.h"

namespace vramscope::analyze {

enum class Unit : std::uint8_t { batch, length };
// The one number in which the commands of the recordings differ; otherwise what their shapes say, of batches. An error names what
// to do.
Result<std::vector<std::uint64_t>> batches_of(std::span<const Engine* const> runs, std::span<const RecordedPool> recorded,
                                              std::span<const std::string> names, Unit unit);

}  // namespace vramscope::analyze
