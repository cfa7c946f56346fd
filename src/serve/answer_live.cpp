// The live set: at an instant beside the timeline, opened up in Peak, and what happened in a range.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "serve/engine_service.h"
#include "serve/tree.h"
#include "serve/words.h"

namespace vramscope::serve {

namespace {

constexpr std::uint32_t kSideRows = 8;
constexpr std::uint32_t kTableRows = 60;

// A row for each group of blocks that are alike in every way a person would tell them apart.
const std::vector<analyze::By> kRowKeys = {analyze::By::category, analyze::By::layer, analyze::By::op,   analyze::By::region,
                                           analyze::By::shape,    analyze::By::dtype, analyze::By::line, analyze::By::known};

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
    if (group.bytes >= bytes) bytes = group.bytes, word = group.keys.size() > 1 ? group.keys[1] : "";
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

std::string place_in_steps(const analyze::Steps& steps, std::uint64_t time_us) {
  const analyze::Step* step = step_at(steps, time_us);
  return step == nullptr ? std::string() : ", " + step_text(*step, time_us);
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
  if (const analyze::Step* step = step_at(steps, blocks->time_us)) {
    out.step = step->number;
    out.step_us = static_cast<double>(blocks->time_us - step->begin_us);
    out.link = fmt::format("step:{}+{:.3f}ms", step->number, *out.step_us / 1000);
  } else {
    out.link = fmt::format("{:.6f}s", out.t / 1e6);
  }
  if (place != nullptr && params.filter.empty()) {
    if (*moment == place->peak_at)
      out.note = "The highest instant of the run";
    else if (place->steady && *moment == place->steady_peak_at)
      out.note = "The highest instant of the steady steps";
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
  const auto rows = engine.live({.at = at, .by = kRowKeys, .where = params.filter, .limit = kTableRows});
  if (!rows) return std::unexpected(rows.error());
  const auto holders = engine.live({.at = at, .by = {analyze::By::layer}, .where = params.filter, .limit = 2});
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

  const analyze::Group* layer = nullptr;
  if (holders)
    for (const analyze::Group& group : holders->groups)
      if (layer == nullptr && !group.keys.empty() && !group.keys[0].empty()) layer = &group;
  out.sentence = fmt::format("{} {} live {}", size_text(rows->total), params.filter.empty() ? "are" : "of the filter are",
                             instant_words(wanted));
  if (layer != nullptr)
    out.sentence += fmt::format(", {} of it in {}", size_text(layer->bytes), analyze::layer_in_words(layer->keys[0]));
  if (layer == nullptr && !out.rows.empty())
    out.sentence += fmt::format(", {} of it {}", size_text(rows->groups[0].bytes), out.rows[0].category);
  out.sentence += ".";
  const analyze::Steps& steps = trace.steps();
  out.note = fmt::format("{} live at {:.6f} s{}.", plural(rows->count, "block", "blocks"), out.t / 1e6,
                         place_in_steps(steps, rows->time_us));
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
  const auto top = engine.top({.t0_us = t0, .t1_us = t1, .by = analyze::By::op, .where = params.filter, .limit = 12});
  if (!top) return std::unexpected(top.error());
  const analyze::Moment first = engine.moment_at(t0 == 0 ? 0 : t0 - 1);
  const analyze::Moment last = engine.moment_at(t1);
  const auto diff = engine.diff({.a = fmt::format("moment:{}", t0 == 0 ? 0 : first),
                                 .b = fmt::format("moment:{}", last),
                                 .by = analyze::By::op,
                                 .where = params.filter,
                                 .limit = 12});
  if (!diff) return std::unexpected(diff.error());
  Range out;
  out.t0 = params.t0;
  out.t1 = params.t1;
  out.allocated = static_cast<double>(top->total);
  out.change = static_cast<double>(diff->total_b) - static_cast<double>(diff->total_a);
  out.freed = out.allocated - out.change;
  out.events = last - first;
  const analyze::Steps& steps = trace.steps();
  const analyze::Step* begin = step_at(steps, t0);
  const analyze::Step* end = step_at(steps, t1);
  if (begin != nullptr && begin == end)
    out.label = fmt::format("step {}", begin->number);
  else if (begin != nullptr && end != nullptr)
    out.label = fmt::format("steps {} to {}", begin->number, end->number);
  const auto row_of_key = [&](const std::string& op, double bytes, std::uint64_t blocks, std::uint64_t example) {
    BlockRow row;
    if (const auto block = engine.allocation(example); block && blocks > 0)
      row = row_of(*block, t1, top->total);
    else
      row.category = "unknown", row.op = op;
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
