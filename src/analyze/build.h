// From a trace to its index.
#pragma once

#include <filesystem>

#include "analyze/index_file.h"
#include "analyze/store.h"
#include "support/result.h"

namespace vramscope::analyze {

// Opens the index at `index` if it belongs to the trace, else builds it there (in memory where that cannot be written).
Result<Store> open_store(const std::filesystem::path& trace, const std::filesystem::path& index, bool keep, unsigned threads);

}  // namespace vramscope::analyze
