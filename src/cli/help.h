// The text that --help prints.
#pragma once

#include <string>

namespace vramscope::cli {

std::string help_page();

}  // namespace vramscope::cli
