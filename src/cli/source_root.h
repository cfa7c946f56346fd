// The option --source-root of verbs that show source code.
#pragma once

#include <optional>
#include <string>

#include "support/plain_file.h"

namespace vramscope::cli {

inline constexpr const char* kSourceRootHelp = "show source files from this folder (default: only the lines stored in the trace)";

// Nothing if the option was not given.
inline Result<std::optional<support::SourceRoot>> open_source_root(const std::string& folder) {
  if (folder.empty()) return std::nullopt;
  auto root = support::SourceRoot::open(folder);
  if (!root) return std::unexpected(root.error());
  return std::move(*root);
}

}  // namespace vramscope::cli
