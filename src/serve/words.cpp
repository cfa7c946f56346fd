#include "serve/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace vramscope::serve {

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// Thousands separated by commas; `text` is digits with an optional fraction.
std::string grouped(std::string text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t i = point; i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-_.:~,").find(c) != std::string_view::npos;
    if (plain)
      out.push_back(c);
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

Result<Tile> tile_range(std::uint64_t level, std::uint64_t tile) {
  if (level < kLowestLevel || level > kHighestLevel || tile > (std::uint64_t{1} << (kHighestLevel - kLowestLevel)))
    return fail("there is no such tile of the time axis");
  return Tile{tile << level, (tile + 1) << level};
}

const analyze::Place* main_place(const analyze::Engine& engine) {
  const int index = engine.main_place();
  const auto places = engine.places();
  return index >= 0 && static_cast<std::size_t>(index) < places.size() ? &places[static_cast<std::size_t>(index)] : nullptr;
}

const analyze::Step* step_at(const analyze::Steps& steps, std::uint64_t time_us) {
  const auto after = std::upper_bound(steps.steps.begin(), steps.steps.end(), time_us,
                                      [](std::uint64_t t, const analyze::Step& step) { return t < step.begin_us; });
  if (after == steps.steps.begin()) return nullptr;
  const analyze::Step& step = *std::prev(after);
  return time_us <= step.end_us ? &step : nullptr;
}

std::string usable_instant(const analyze::Engine& engine, std::string_view at) {
  if (at.empty() || at == "steady") {
    const analyze::Place* place = main_place(engine);
    return place != nullptr && place->steady ? "steady" : "peak";
  }
  return std::string(at);
}

std::string_view instant_words(std::string_view at) {
  if (at == "steady") return "at the steady peak";
  if (at == "peak") return "at the peak";
  return at == "end" ? "at the end" : "at this instant";
}

std::string setting(const analyze::Overview& overview, std::string_view key) {
  for (const auto& [name, value] : overview.settings)
    if (name == key) return value;
  return {};
}

double share_of(analyze::Bytes part, analyze::Bytes whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

BlockRow row_of(const analyze::Block& block, std::uint64_t now_us, analyze::Bytes total) {
  BlockRow row;
  row.id = block.id;
  row.category = block.category;
  row.layer = block.layer;
  row.op = block.op.empty() ? block.name : block.op;
  row.region = block.region;
  row.shape = block.shape;
  row.dtype = block.dtype;
  row.line = block.line;
  row.known = block.known;
  row.blocks = 1;
  row.age_us = static_cast<double>(now_us > block.birth_us ? now_us - block.birth_us : 0);
  row.t = static_cast<double>(block.birth_us);
  row.bytes = static_cast<double>(block.granted);
  row.share = share_of(block.granted, total);
  return row;
}

std::string capital(std::string_view text) {
  std::string out(text);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

std::string sentence(std::string_view text) {
  // A name at the start stays as the user wrote it.
  const std::size_t word = std::min(text.find(' '), text.size());
  const bool is_name = text.substr(0, word).find_first_of("_/.=:") != std::string_view::npos;
  std::string out = is_name ? std::string(text) : capital(text);
  if (!out.empty() && std::string_view(".?!").find(out.back()) == std::string_view::npos) out += ".";
  return out;
}

std::string step_text(const analyze::Step& step, std::uint64_t time_us) {
  const std::uint64_t us = time_us - step.begin_us;
  return us < 1'000'000 ? fmt::format("step {} + {:.3f} ms", step.number, static_cast<double>(us) / 1e3)
                        : fmt::format("step {} + {:.6f} s", step.number, static_cast<double>(us) / 1e6);
}

std::string seconds_text(std::uint64_t us) {
  if (us < 1000) return fmt::format("{} µs", us);
  if (us < 1'000'000) return fmt::format("{:.1f} ms", static_cast<double>(us) / 1e3);
  return fmt::format("{:.2f} s", static_cast<double>(us) / 1e6);
}

std::string size_text(analyze::Bytes bytes) {
  const auto value = static_cast<double>(bytes);
  if (value >= 1e6 * kMiB) return grouped(fmt::format("{:.1f}", value / kMiB / 1024)) + " GiB";
  if (value >= 0.1 * kMiB) return grouped(fmt::format("{:.1f}", value / kMiB)) + " MiB";
  if (value >= 1024) return fmt::format("{:.1f} KiB", value / 1024);
  return fmt::format("{} B", bytes);
}

std::string count_text(std::uint64_t number) { return grouped(fmt::format("{}", number)); }

std::string plural(std::uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count_text(number), number == 1 ? one : many);
}

std::string address(std::string_view view, std::string_view at, std::string_view where) {
  static constexpr std::string_view kViews[] = {"overview", "timeline", "peak", "steps",  "layers",
                                                "leaks",    "map",      "oom",  "source", "diff"};
  const bool known = std::find(std::begin(kViews), std::end(kViews), view) != std::end(kViews);
  // The analysis speaks of verbs, the page of views.
  const std::string_view shown = known ? view : view == "fragmentation" ? "map" : view == "ledger" ? "overview" : "timeline";
  std::string out = fmt::format("#{}", shown);
  char separator = '?';
  if (!at.empty()) out += fmt::format("{}at={}", std::exchange(separator, '&'), escaped(at));
  if (!where.empty()) out += fmt::format("{}f={}", std::exchange(separator, '&'), escaped(where));
  return out;
}

}  // namespace vramscope::serve
