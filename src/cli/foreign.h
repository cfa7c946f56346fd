// Profiles of other tools where a trace is expected: imported into a temporary trace, which disappears when the program exits.
#pragma once

#include <filesystem>

#include "support/result.h"

namespace vramscope::cli {

// The file itself if it looks like a trace of ours, or cannot be read; otherwise the temporary trace. The error for a file of any
// other kind is that of 'vramscope import'.
Result<std::filesystem::path> as_trace(const std::filesystem::path& file);

}  // namespace vramscope::cli
