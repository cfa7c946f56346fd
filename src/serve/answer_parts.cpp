#include "serve/answer_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyze/verdict/notable.h"
#include "serve/gen/views.h"

namespace vramscope::serve {

namespace {

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
    return fail("unknown tile of the time axis");
  return Tile{tile << level, (tile + 1) << level};
}

const analyze::Place* main_place(const analyze::Engine& engine) {
  const int index = engine.main_place();
  const auto places = engine.places();
  return index >= 0 && static_cast<std::size_t>(index) < places.size() ? &places[static_cast<std::size_t>(index)] : nullptr;
}

std::string usable_instant(const analyze::Engine& engine, std::string_view at) {
  if (at.empty() || at == "steady") {
    const analyze::Place* place = main_place(engine);
    return place != nullptr && place->steady ? "steady" : "peak";
  }
  return std::string(at);
}

std::string setting(const analyze::Overview& overview, std::string_view key) {
  for (const auto& [name, value] : overview.settings)
    if (name == key) return value;
  return {};
}

double share_of(analyze::Bytes part, analyze::Bytes whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Result<PoolOverTime> pool_over_time(const analyze::Engine& engine, std::uint64_t t0_us, std::uint64_t t1_us) {
  const auto columns = engine.stacked({.t0_us = t0_us, .t1_us = t1_us, .width = kTileColumns / 2, .where = {}});
  if (!columns) return std::unexpected(columns.error());
  PoolOverTime out{.t = column(columns->border_us), .held = {}, .live = column(columns->high), .events = column(columns->events)};
  if (!out.t.empty()) out.t.pop_back();
  for (const analyze::Moment at : columns->at) out.held.push_back(static_cast<double>(engine.regions_at(at)));
  return out;
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

std::vector<analyze::By> row_keys() {
  return {analyze::By::category, analyze::By::layer, analyze::By::op,   analyze::By::region,
          analyze::By::shape,    analyze::By::dtype, analyze::By::line, analyze::By::known};
}

BlockRow row_of_group(const analyze::Group& group, std::uint64_t now_us, analyze::Bytes total) {
  const auto key = [&](std::size_t i) { return i < group.keys.size() ? group.keys[i] : std::string(); };
  BlockRow row;
  row.id = group.example;
  row.category = key(0);
  row.layer = key(1);
  row.op = key(2);
  row.region = key(3);
  row.shape = key(4);
  row.dtype = key(5);
  row.line = key(6);
  row.known = key(7);
  row.blocks = group.count;
  row.age_us = static_cast<double>(now_us > group.oldest_us ? now_us - group.oldest_us : 0);
  row.t = static_cast<double>(group.oldest_us);
  row.bytes = static_cast<double>(group.bytes);
  row.share = share_of(group.bytes, total);
  return row;
}

const analyze::Fragmentation* fragmentation_of(const Opened& trace) {
  return trace.fragmentation() ? &*trace.fragmentation() : nullptr;
}

std::string instant_of(const Opened& trace, const analyze::Finding& finding) {
  return analyze::instant_of(trace.engine(), trace.ooms(), fragmentation_of(trace), finding);
}

std::string remedy_of_failure(const Opened& trace) { return analyze::remedy_of_failure(trace.ooms(), trace.findings()); }

const View& view_for(std::string_view verb) {
  const auto named = [](std::string_view name) { return std::ranges::find(kViews, name, &View::name); };
  if (const auto* const view = named(verb); view != std::end(kViews)) return *view;
  return *named(verb == "fragmentation" ? "map" : verb == "ledger" ? "overview" : "timeline");
}

std::string address(std::string_view verb, std::string_view at, std::string_view where) {
  std::string out = fmt::format("#{}", view_for(verb).name);
  char separator = '?';
  if (!at.empty()) out += fmt::format("{}at={}", std::exchange(separator, '&'), escaped(at));
  if (!where.empty()) out += fmt::format("{}f={}", std::exchange(separator, '&'), escaped(where));
  return out;
}

}  // namespace vramscope::serve
