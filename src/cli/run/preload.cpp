#include "cli/run/preload.h"

#include <string_view>
#include <vector>

namespace vramscope::cli {

namespace {

constexpr std::string_view kSanitizers[] = {"libasan.", "libtsan.", "liblsan.", "libubsan.", "libhwasan.", "libclang_rt."};

bool is_sanitizer(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view prefix : kSanitizers)
    if (name.starts_with(prefix)) return true;
  return false;
}

// The loader accepts colons and spaces alike.
std::vector<std::string> entries(std::string_view list) {
  std::vector<std::string> all;
  while (!list.empty()) {
    const std::size_t end = list.find_first_of(": ");
    if (end != 0) all.emplace_back(list.substr(0, end));
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
  }
  return all;
}

}  // namespace

std::string preload_with(const char* before, const std::string& library) {
  std::string first, rest;
  for (const std::string& entry : entries(before != nullptr ? before : "")) {
    if (entry == library) return before;
    if (rest.empty() && is_sanitizer(entry))
      first += entry + ":";
    else
      rest += ":" + entry;
  }
  return first + library + rest;
}

std::string asan_options_with(const char* before) {
  const std::string ours = "verify_asan_link_order=0";
  return before == nullptr || *before == '\0' ? ours : ours + ":" + before;
}

}  // namespace vramscope::cli
