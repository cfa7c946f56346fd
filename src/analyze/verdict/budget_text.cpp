#include "analyze/verdict/budget_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace vramscope::analyze {
namespace {

constexpr double kSpare = 0.05;
constexpr Bytes kKi = 1024;
constexpr std::size_t kMostLayers = 5;

// Rounded up to whole KiB, or to tenths of MiB where those are less than a hundredth.
std::string limit_for(Bytes bytes) {
  const double most = std::ceil(static_cast<double>(bytes) * (1 + kSpare) / static_cast<double>(kKi));
  return most < 10'240 ? fmt::format("\"{:.0f}KiB\"", most)
                       : fmt::format("\"{:.1f}MiB\"", std::ceil(most / static_cast<double>(kKi) * 10) / 10);
}

// A name from a trace that can be a key of the file and a term of a filter as it is.
bool is_plain(std::string_view name) {
  return !name.empty() && std::ranges::none_of(name, [](char c) {
    return c == '"' || c == '\\' || c == '*' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}
bool is_regex(std::string_view name) { return name.size() >= 2 && name.starts_with('/') && name.ends_with('/'); }

// The largest groups at the steady peak.
std::string table_of(const Engine& engine, By by, std::string_view title, std::size_t most) {
  const auto live = engine.live({.at = "steady", .by = {by}, .where = {}, .limit = 0});
  if (!live) return {};
  std::string out;
  std::size_t written = 0;
  for (const Group& group : live->groups) {
    const std::string& name = group.keys[0];
    if (written == most || static_cast<double>(group.bytes) < static_cast<double>(live->total) * kSpare) break;
    if (!is_plain(name) || is_regex(name)) continue;
    out += fmt::format("\"{}\" = {}\n", name, limit_for(group.bytes));
    ++written;
  }
  return out.empty() ? out : fmt::format("\n[{}]  # at the steady peak\n{}", title, out);
}

}  // namespace

std::string budget_for(const Engine& engine, std::string_view name) {
  if (engine.main_place() < 0) return {};
  const Place& place = engine.places()[static_cast<std::size_t>(engine.main_place())];
  if (place.allocs == 0) return {};
  std::string out = "# What ";
  for (const char c : name) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  out +=
      fmt::format(" needed, and {:.0f} % to spare. To check another run: vramscope check RUN --budget vram.toml\n", kSpare * 100);
  if (place.steady) out += fmt::format("steady_peak = {}\n", limit_for(place.steady_peak));
  out += fmt::format("peak = {}\n", limit_for(place.peak));
  if (place.regions_peak > 0) out += fmt::format("pool = {}\n", limit_for(place.regions_peak));
  if (const auto leaks = engine.leaks(); leaks && leaks->verdict == "not growing")
    out += fmt::format("growth_per_step = {}\n",
                       limit_for(std::max<Bytes>(kKi, static_cast<Bytes>(std::max(0.0, leaks->bytes_per_step)))));
  if (engine.ooms().events.empty()) out += "ooms = 0\n";
  if (!place.steady) return out;
  return out + table_of(engine, By::category, "category", ~std::size_t{0}) + table_of(engine, By::layer, "layer", kMostLayers);
}

}  // namespace vramscope::analyze
