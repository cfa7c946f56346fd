// What two or more runs were started with, as far as it differs: the likely reason for what differs in their memory.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyze/api.h"

namespace vramscope::analyze {

// A name and one value for each run ("" = not set): arguments first, then samples per step, environment, versions, the rest.
std::vector<std::pair<std::string, std::vector<std::string>>> differences(std::span<const Engine* const> runs,
                                                                          std::span<const CompareSide> sides);

// The options of each command that not all of the commands have: "--batch 32" and "--batch 64 --eager".
std::vector<std::string> differing_arguments(std::span<const std::string> commands);

}  // namespace vramscope::analyze
