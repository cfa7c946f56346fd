// JSON strings from bytes of any origin.
#pragma once

#include <string>
#include <string_view>

namespace vramscope::support {

// Appends `text` as a JSON string with its quotes. Invalid UTF-8 becomes U+FFFD, so that the output is always valid.
void append_json_string(std::string& out, std::string_view text);

// Length of the valid UTF-8 character at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text);

}  // namespace vramscope::support
