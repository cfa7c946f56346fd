// Text as a sentence of its own.
#pragma once

#include <string>
#include <string_view>

namespace vramscope::support {

std::string capitalized(std::string_view text);

// With a capital letter and a period. A name at the start, such as a path or a variable, stays as it is.
std::string as_sentence(std::string_view text);

}  // namespace vramscope::support
