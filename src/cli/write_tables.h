// The tables of traces as Parquet files, one per table and trace.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

// Writes <table>-<number>.parquet into the folder for each trace and each table that `wanted` accepts.
// `sources`: what the user named each trace by; two runs of one name stay apart.
Status write_tables(const std::vector<std::filesystem::path>& traces, const std::vector<std::filesystem::path>& sources,
                    const std::filesystem::path& folder, const std::function<bool(std::string_view table)>& wanted);

}  // namespace vramscope::cli
