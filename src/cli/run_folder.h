// What a person means by the name of a trace: a file, or the folder of a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

// The traces of a file or folder, in order of their names. Never empty: nothing there is an error.
Result<std::vector<std::filesystem::path>> traces_of(const std::filesystem::path& place);

// For what shows whole folders: the places as they are, or, with --rank, the traces of that rank in them.
Result<std::vector<std::string>> places_of(std::vector<std::string> places);

}  // namespace vramscope::cli
