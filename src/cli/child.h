// Runs another program to its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

enum class Streams : std::uint8_t { inherited, none };

// The exit code; 2 if a signal ended it. `file` is what find_command() returned for command[0].
Result<int> run_and_wait(const std::string& file, const std::vector<std::string>& command, Streams streams = Streams::inherited);

}  // namespace vramscope::cli
