// Builds the index of a trace.
#pragma once

#include <filesystem>

#include "analyze/api.h"
#include "analyze/index/store.h"
#include "support/result.h"

namespace vramscope::analyze {

// Takes the index of the trace from the cache, or builds it and keeps it there if that took long.
Result<Store> open_store(const std::filesystem::path& trace, const OpenOptions& options);

// A store with only what the events contain: columns, tables and tallies, without categories, steps and views.
Result<Store> read_store(const std::filesystem::path& trace, unsigned threads);

}  // namespace vramscope::analyze
