// Programs in trouble whose cause is known: a pool in pieces that fails, and one that grows although enough is free.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::tracegen {

std::vector<std::string> trouble_cases();
Status write_trouble(const std::string& name, const std::filesystem::path& path);

}  // namespace vramscope::tracegen
