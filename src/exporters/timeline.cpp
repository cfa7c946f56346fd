#include "exporters/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/absent.h"
#include "analyze/block_rows.h"

namespace vramscope::exporters {

namespace {

constexpr std::size_t kLargestBlocks = 200;

std::vector<analyze::Block> largest_blocks(const analyze::Engine& engine) {
  analyze::BlockRows rows(engine);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sizes;  // bytes, block; the smallest first
  const auto smaller = std::greater<>{};
  for (std::uint64_t id = 0; id < rows.size(); ++id) {
    if (!rows.recorded(id)) continue;
    const analyze::BlockRow row = rows.row(id);
    if (static_cast<int>(row.place) != engine.main_place()) continue;
    if (sizes.size() == kLargestBlocks && row.granted <= sizes.front().first) continue;
    sizes.emplace_back(row.granted, id);
    std::ranges::push_heap(sizes, smaller);
    if (sizes.size() <= kLargestBlocks) continue;
    std::ranges::pop_heap(sizes, smaller);
    sizes.pop_back();
  }
  std::ranges::sort(sizes, {}, &std::pair<std::uint64_t, std::uint64_t>::second);
  std::vector<analyze::Block> out;
  for (const auto& [bytes, id] : sizes)
    if (auto block = engine.allocation(id)) out.push_back(std::move(*block));
  return out;
}

// Nothing is allocated in most columns of a long pause.
std::vector<std::size_t> columns_that_differ(const analyze::Stacked& stacked) {
  std::vector<std::size_t> out;
  for (std::size_t column = 0; column < stacked.time_us.size(); ++column) {
    const auto same = [&](const auto& row) { return row[column] == row[out.back()]; };
    if (out.empty() || !std::ranges::all_of(stacked.peak, same)) out.push_back(column);
  }
  return out;
}

}  // namespace

std::string Timeline::title() const { return program.empty() ? fmt::format("rank {}", rank) : program; }

std::string Timeline::title(const analyze::Block& block) const {
  for (const std::string& text : {block.name, block.layer, block.op, block.line})
    if (!text.empty()) return fmt::format("{} ({})", text, block.category);
  return block.category;
}

std::string track_of(const analyze::Sample& sample) {
  return sample.device < 0 ? "host resident set" : fmt::format("GPU {} used on the card", sample.device);
}

Result<Timeline> timeline_of(const Request& request, std::uint32_t columns) {
  const analyze::Engine& engine = request.engine;
  analyze::Overview overview = engine.overview();
  Timeline out;
  out.program = std::move(overview.program);
  out.rank = overview.rank.value_or(0);
  out.start_realtime_us = overview.start_realtime_us;
  out.duration_us = overview.duration_us;
  for (std::size_t i = 0; i < overview.places.size(); ++i) {
    if (overview.places[i].allocs == 0) continue;
    analyze::StackedRequest wanted;
    wanted.place = static_cast<int>(i);
    wanted.width = columns;
    auto stacked = engine.stacked(wanted);
    if (!stacked) return std::unexpected(stacked.error());
    Timeline::Track track{overview.places[i], std::move(*stacked), {}, {}};
    for (const auto& row : track.stacked.peak)
      track.used.push_back(std::ranges::any_of(row, [](analyze::Bytes bytes) { return bytes > 0; }));
    track.columns = columns_that_differ(track.stacked);
    out.places.push_back(std::move(track));
  }
  if (out.places.empty()) return fail(std::string(analyze::kNoAllocations));
  out.steps = engine.steps().steps;
  out.phases = engine.phases();
  out.ooms = engine.ooms().events;
  out.samples = engine.samples();
  out.largest = largest_blocks(engine);
  return out;
}

}  // namespace vramscope::exporters
