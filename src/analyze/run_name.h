// What to call a run: as the person who recorded it named its folder or file.
#pragma once

#include <filesystem>
#include <string>

namespace vramscope::analyze {

// The last part of the path; for "." and "runs/" that of the folder they mean.
std::string run_name(const std::filesystem::path& file_or_folder);

}  // namespace vramscope::analyze
