#include "exporters/identity.h"

#include <algorithm>
#include <filesystem>

namespace vramscope::exporters {

namespace {

// Recordings are called <host>-<pid>-<start>.vram; a host's name may have dashes itself.
std::string host_in(const std::string& stem) {
  const auto is_number = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  const std::size_t last = stem.rfind('-');
  if (last == std::string::npos || last == 0) return {};
  const std::size_t before = stem.rfind('-', last - 1);
  if (before == std::string::npos || !is_number(std::string_view(stem).substr(before + 1, last - before - 1))) return {};
  return stem.substr(0, before);
}

}  // namespace

Identity identity_of(const Request& request) {
  const analyze::Overview overview = request.engine.overview();
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(overview.path, error);
  Identity out;
  out.host = host_in(path.stem().string());
  out.run = out.host.empty() ? path.stem().string() : path.parent_path().filename().string();
  out.rank = overview.rank.value_or(0);
  return out;
}

}  // namespace vramscope::exporters
