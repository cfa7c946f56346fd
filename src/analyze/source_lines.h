// What lines of source hold at an instant.
#pragma once

#include <cstddef>
#include <string_view>

#include "analyze/api.h"
#include "analyze/gen/view_answers.h"

namespace vramscope::analyze {

inline constexpr std::size_t kMostSourceLines = 20000;  // that are shown of one file

// The errors are those of Engine::live().
Result<SourceLines> source_lines(const Engine& engine, std::string_view at, std::string_view where = {});

}  // namespace vramscope::analyze
