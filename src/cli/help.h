// The page that --help shows.
#pragma once

#include <string>

namespace vramscope::cli {

std::string help_page();

}  // namespace vramscope::cli
