// Files that a verb writes beside its answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

// Refuses an output that is one of the inputs, by whatever name (links too): writing it would destroy what is read. An input that
// is a folder stands for the traces in it.
Status not_an_input(const std::string& output, const std::vector<std::string>& inputs);

// Writes the whole file, or says why not.
Status write_output(const std::string& output, std::string_view text);

}  // namespace vramscope::cli
