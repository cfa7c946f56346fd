// Profiles of other tools where a trace is expected: imported into a temporary trace, which disappears when the program exits.
#pragma once

#include <filesystem>

#include "support/result.h"

namespace vramscope::cli {

// The file itself if it is a trace of ours, or nothing that can be imported; otherwise the temporary trace.
Result<std::filesystem::path> as_trace(const std::filesystem::path& file);

}  // namespace vramscope::cli
