// Small files with valid checksums that claim to hold a lot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::tracegen {

std::vector<std::string> forged_cases();
// Small files, below 100 KB.
Status write_forged(const std::string& name, const std::filesystem::path& path);

}  // namespace vramscope::tracegen
