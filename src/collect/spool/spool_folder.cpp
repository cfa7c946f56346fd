#include "collect/spool/spool_folder.h"

#include <algorithm>

namespace vramscope::collect {

namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_spool_file(std::string_view name) {
  for (const std::string_view known : {kClaimName, kOptionsName, kRunLink})
    if (name == known) return true;
  for (const std::string_view extension : {".spool", ".lock", ".defs", ".new", kTraceNote, kFreshNote}) {
    if (!name.ends_with(extension)) continue;
    const std::string_view stem = name.substr(0, name.size() - extension.size());
    const std::size_t dash = stem.find('-');
    return dash != std::string_view::npos && is_number(stem.substr(0, dash)) && is_number(stem.substr(dash + 1));
  }
  return false;
}

}  // namespace vramscope::collect
