// What a user means by the name of a trace: a file, or a run folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

// The traces of a file or folder, ordered by name; a profile of another tool is imported (foreign.h). Never empty: no trace is an
// error. For a verb that answers and exits: it may
// use as much memory as these traces need (memory_limit.h).
Result<std::vector<std::filesystem::path>> traces_of(const std::filesystem::path& place);

// The trace of a file, or of a folder that has only one. Several are an error that names one of them.
Result<std::filesystem::path> only_trace_of(const std::filesystem::path& place);

// For verbs that show whole folders: the places as they are, or, with --rank, the traces of that rank in them.
Result<std::vector<std::string>> places_of(std::vector<std::string> places);

}  // namespace vramscope::cli
