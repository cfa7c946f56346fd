// The last line of a list of frames if the stack was truncated.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace vramscope::trace {

inline std::string more_frames(std::uint64_t cut) { return fmt::format("({} more frames)", cut); }

}  // namespace vramscope::trace
