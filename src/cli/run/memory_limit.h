// How much memory an answer may use: what the sizes of the traces in question allow, and no more.
//
// Counts in a trace are checked where they are used. This is the second line of defense: anything that was overlooked results
// in a one-line error instead of a machine that swaps.
#pragma once

#include <filesystem>
#include <span>

namespace vramscope::cli {

// From now on, this process may use what these traces and those of earlier calls allow. Not for programs that start others.
void limit_memory(std::span<const std::filesystem::path> traces);

}  // namespace vramscope::cli
