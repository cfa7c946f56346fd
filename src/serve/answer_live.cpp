// The live set: at an instant next to the timeline, opened up in Peak, and what happened in a range.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/captions.h"
#include "analyze/query/instant_text.h"
#include "serve/answer_parts.h"
#include "serve/engine_service.h"
#include "serve/tree.h"

namespace vramscope::serve {

namespace {

std::vector<Share> shares_of(const analyze::Live& by_category_and_known) {
  std::vector<Share> out;
  std::map<std::string, std::pair<analyze::Bytes, std::string>> most_known;
  for (const analyze::Group& group : by_category_and_known.groups) {
    auto same = std::find_if(out.begin(), out.end(), [&](const Share& share) { return share.name == group.keys[0]; });
    if (same == out.end()) {
      out.push_back({.name = group.keys[0], .category = group.keys[0]});
      same = std::prev(out.end());
    }
    same->bytes += static_cast<double>(group.bytes);
    same->blocks += group.count;
    auto& [bytes, word] = most_known[group.keys[0]];
    if (group.bytes < bytes) continue;
    bytes = group.bytes;
    word = group.keys.size() > 1 ? group.keys[1] : "";
  }
  for (Share& share : out) {
    share.share = by_category_and_known.total == 0 ? 0 : share.bytes / static_cast<double>(by_category_and_known.total);
    share.known = most_known[share.name].second;
  }
  std::sort(out.begin(), out.end(), [](const Share& a, const Share& b) { return a.bytes > b.bytes; });
  return out;
}

std::optional<Event> event_at(const analyze::Engine& engine, analyze::Moment moment, std::uint64_t time_us) {
  const auto events = engine.events({.t0_us = time_us, .t1_us = time_us + 1, .where = {}});
  if (!events) return std::nullopt;
  for (const analyze::MemoryEvent& event : *events) {
    if (event.at != moment) continue;
    Event out;
    out.kind = event.is_free ? "free" : "alloc";
    out.t = static_cast<double>(event.time_us);
    out.block = event.block.id;
    out.bytes = static_cast<double>(event.block.granted);
    if (event.block.death != analyze::kNever) out.lives_us = static_cast<double>(event.block.death_us - event.block.birth_us);
    out.op = event.block.op.empty() ? event.block.name : event.block.op;
    out.layer = event.block.layer;
    out.line = event.block.line;
    out.requested = static_cast<double>(event.block.requested);
    out.granted = static_cast<double>(event.block.granted);
    return out;
  }
  return std::nullopt;
}

}  // namespace

Result<Instant> EngineService::instant(const InstantParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const auto moment = engine.resolve(usable_instant(engine, params.at));
  if (!moment) return std::unexpected(moment.error());
  const std::string at = fmt::format("moment:{}", *moment);
  const auto blocks = engine.live({.at = at, .by = {}, .where = params.filter, .limit = kSideRows});
  if (!blocks) return std::unexpected(blocks.error());
  const auto groups =
      engine.live({.at = at, .by = {analyze::By::category, analyze::By::known}, .where = params.filter, .limit = 0});
  if (!groups) return std::unexpected(groups.error());
  const analyze::Steps& steps = trace.steps();
  const analyze::Place* place = main_place(engine);
  Instant out;
  out.moment = *moment;
  out.t = static_cast<double>(blocks->time_us);
  out.phase = blocks->phase;
  out.total = static_cast<double>(blocks->total);
  out.blocks = blocks->count;
  if (const analyze::Step* step = analyze::step_at(steps, blocks->time_us)) {
    out.step = step->number;
    out.step_us = static_cast<double>(blocks->time_us - step->begin_us);
  }
  out.link = analyze::instant_text(engine, *moment);
  if (place != nullptr && params.filter.empty()) {
    out.note = analyze::caption_of_peak(engine, *moment);
    out.at_least = !place->order_exact;
  }
  out.shares = shares_of(*groups);
  for (const analyze::Block& block : blocks->blocks) out.rows.push_back(row_of(block, blocks->time_us, blocks->total));
  out.more_blocks = blocks->rest_count;
  out.more_bytes = static_cast<double>(blocks->rest_bytes);
  out.event = event_at(engine, *moment, blocks->time_us);
  return out;
}

Result<Peak> EngineService::peak(const PeakParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const std::string wanted = usable_instant(engine, params.at);
  const auto moment = engine.resolve(wanted);
  if (!moment) return std::unexpected(moment.error());
  const std::string at = fmt::format("moment:{}", *moment);
  const auto levels = levels_from(params.open);
  if (!levels) return std::unexpected(levels.error());
  const auto opened = engine.live({.at = at, .by = *levels, .where = params.filter, .limit = 0});
  if (!opened) return std::unexpected(opened.error());
  const auto rows = engine.peak({.at = wanted, .by = row_keys(), .where = params.filter, .limit = kTableRows});
  if (!rows) return std::unexpected(rows.error());
  const analyze::Place* place = main_place(engine);
  Peak out;
  out.moment = *moment;
  out.t = static_cast<double>(rows->time_us);
  out.total = static_cast<double>(rows->total);
  out.blocks = rows->count;
  out.at_least = place != nullptr && !place->order_exact;
  out.nodes = tree_of(opened->groups, *levels);
  for (const analyze::Group& group : rows->groups) out.rows.push_back(row_of_group(group, rows->time_us, rows->total));
  out.more_rows = rows->rest_groups;
  out.more_blocks = rows->rest_count;
  out.more_bytes = static_cast<double>(rows->rest_bytes);
  out.sentence = *rows->sentence;
  out.note = analyze::caption(*rows, trace.steps());
  return out;
}

Result<Range> EngineService::range(const RangeParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  if (!(params.t0 >= 0) || !(params.t1 > params.t0) || params.t1 > 1e18) return fail("the range is empty");
  const auto t0 = static_cast<std::uint64_t>(params.t0);
  const auto t1 = static_cast<std::uint64_t>(params.t1);
  const auto top = engine.top({.t0_us = t0, .t1_us = t1, .by = analyze::By::op, .where = params.filter, .limit = kRangeRows});
  if (!top) return std::unexpected(top.error());
  const analyze::Moment first = engine.moment_at(t0 == 0 ? 0 : t0 - 1);
  const analyze::Moment last = engine.moment_at(t1);
  const auto diff = engine.diff({.a = fmt::format("moment:{}", t0 == 0 ? 0 : first),
                                 .b = fmt::format("moment:{}", last),
                                 .by = analyze::By::op,
                                 .where = params.filter,
                                 .limit = kRangeRows});
  if (!diff) return std::unexpected(diff.error());
  Range out;
  out.t0 = params.t0;
  out.t1 = params.t1;
  out.allocated = static_cast<double>(top->total);
  out.change = static_cast<double>(diff->total_b) - static_cast<double>(diff->total_a);
  out.freed = out.allocated - out.change;
  out.events = last - first;
  out.label = analyze::caption_of_range(trace.steps(), t0, t1);
  const auto row_of_key = [&](const std::string& op, double bytes, std::uint64_t blocks, std::uint64_t example) {
    BlockRow row;
    if (const auto block = engine.allocation(example); block && blocks > 0)
      row = row_of(*block, t1, top->total);
    else {
      row.category = "unknown";
      row.op = op;
    }
    row.id = example;
    row.op = op;
    row.blocks = blocks;
    row.bytes = bytes;
    return row;
  };
  for (const analyze::Group& group : top->groups)
    out.born.push_back(
        row_of_key(group.keys.empty() ? "" : group.keys[0], static_cast<double>(group.bytes), group.count, group.example));
  for (const analyze::DiffRow& row : diff->rows)
    if (row.change > 0) {
      const auto same = std::find_if(top->groups.begin(), top->groups.end(),
                                     [&](const analyze::Group& g) { return !g.keys.empty() && g.keys[0] == row.key; });
      BlockRow stayed = row_of_key(row.key, static_cast<double>(row.change), same != top->groups.end() ? 1 : 0,
                                   same != top->groups.end() ? same->example : out.stayed.size());
      out.stayed.push_back(std::move(stayed));
    }
  return out;
}

}  // namespace vramscope::serve
