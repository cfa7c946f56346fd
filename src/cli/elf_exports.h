// Which symbols a shared library exports, read from the file: nothing is loaded or run.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "support/result.h"

namespace vramscope::cli {

Result<std::set<std::string>> elf_exports(const std::filesystem::path& library);

}  // namespace vramscope::cli
