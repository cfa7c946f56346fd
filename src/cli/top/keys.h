// Finds the keys in what a terminal sends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vramscope::cli::top {

// "up", "down", "enter", "escape", "backspace", or a character, which may take several bytes. One read may contain many keys: a
// busy machine reads late, and a paste arrives at once. Sequences of other special keys are ignored.
std::vector<std::string> keys_in(std::string_view bytes);

}  // namespace vramscope::cli::top
