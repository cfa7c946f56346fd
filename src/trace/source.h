// Settings of a trace that was imported: what it was made from, and what that does not contain.
#pragma once

#include <string_view>

namespace vramscope::trace {

inline constexpr std::string_view kSourceFormat = "source.format";  // only imported traces have it
inline constexpr std::string_view kSourceTitle = "source.title";    // in a sentence
inline constexpr std::string_view kSourceLacks = "source.lacks";    // a list, in words

}  // namespace vramscope::trace
