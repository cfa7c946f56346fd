// Files that a verb writes in addition to its answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

// Rejects an output that is one of the inputs under any name (including links): writing it would destroy what is read. An input
// that is a folder stands for the traces in it.
Status not_an_input(const std::string& output, const std::vector<std::string>& inputs);

// Writes the whole file, or returns why not. The old file stays until the new one is complete; a link is replaced, not
// followed.
Status write_output(const std::string& output, std::string_view text);

}  // namespace vramscope::cli
