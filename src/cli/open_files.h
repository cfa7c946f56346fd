// Room for all traces that are open at once.
#pragma once

#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

// Raises this process's limit on open files as far as it may, and fails if the traces in these places are still too many. Not for
// programs that start others: some close every descriptor up to the limit.
Status allow_open_files(const std::vector<std::string>& places);

}  // namespace vramscope::cli
