// Runs another program to its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/result.h"

namespace vramscope::cli {

inline constexpr int kEndedBySignal = 128;

enum class Streams : std::uint8_t { inherited, none };

// The exit code, or kEndedBySignal plus the number of the signal, as in a shell. `file` is what find_command() returned for
// command[0]. Signals of the terminal end the other program only, so that the caller can clean up; it never outlives this one.
Result<int> run_and_wait(const std::string& file, const std::vector<std::string>& command, Streams streams = Streams::inherited);

}  // namespace vramscope::cli
