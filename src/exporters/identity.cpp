#include "exporters/identity.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace vramscope::exporters {

namespace {

constexpr std::string_view kOurs = ".vram";

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

// The folder of a recording with one trace per process; otherwise the file.
std::filesystem::path run_of(const std::filesystem::path& trace) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(trace, error).lexically_normal();
  return path.extension() == kOurs && !host_in(path.stem().string()).empty() ? path.parent_path() : path;
}

// The last parts of the path of a run.
std::string name_of(std::filesystem::path run, std::size_t parts) {
  std::filesystem::path out = run.extension() == kOurs ? run.stem() : run.filename();
  for (; parts > 1 && run.has_relative_path(); --parts) {
    run = run.parent_path();
    out = run.filename() / out;
  }
  return out.string();
}

}  // namespace

std::vector<std::string> run_names(std::span<const std::filesystem::path> traces) {
  std::set<std::filesystem::path> runs;
  for (const auto& trace : traces) runs.insert(run_of(trace));
  std::map<std::filesystem::path, std::string> names;
  std::vector<std::filesystem::path> left(runs.begin(), runs.end());
  constexpr std::size_t kDeepest = 64;
  for (std::size_t parts = 1; !left.empty() && parts <= kDeepest; ++parts) {
    std::map<std::string, std::size_t> uses;
    for (const auto& run : runs) ++uses[name_of(run, parts)];
    std::erase_if(left, [&](const auto& run) {
      const std::string name = name_of(run, parts);
      if (uses[name] > 1) return false;
      names[run] = name;
      return true;
    });
  }
  for (const auto& run : left) names[run] = run.string();  // "x" and "x.vram"
  std::vector<std::string> out;
  for (const auto& trace : traces) out.push_back(names[run_of(trace)]);
  return out;
}

Identity identity_of(const Request& request) {
  const analyze::Overview overview = request.engine.overview();
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(overview.path, error);
  Identity out;
  out.host = host_in(path.stem().string());
  out.run = request.run.empty() ? name_of(run_of(overview.path), 1) : request.run;
  out.rank = overview.rank.value_or(0);
  return out;
}

}  // namespace vramscope::exporters
