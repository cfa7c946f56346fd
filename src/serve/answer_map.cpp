// The address map of a pool, its holes and the request that made it grow; one block's details.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "analyze/absent.h"
#include "analyze/captions.h"
#include "analyze/query/instant_text.h"
#include "analyze/verdict/notable.h"
#include "analyze/verdict/pool_instant.h"
#include "serve/answer_parts.h"
#include "serve/engine_service.h"
#include "serve/failed_pool.h"

namespace vramscope::serve {

namespace {

constexpr std::uint64_t kMostRows = 44;  // of the map
constexpr std::size_t kMostBlocks = 60000;
constexpr double kCellsOfALine = 1024;  // about a pixel each

// A power of two, so that the pool fits the window.
double line_bytes_for(const std::vector<analyze::Region>& regions) {
  analyze::Bytes total = 0;
  for (const auto& region : regions) total += region.bytes;
  analyze::Bytes line = std::bit_ceil(std::max<analyze::Bytes>(4096, total / kMostRows));
  const auto lines = [&] {
    std::uint64_t sum = 0;
    for (const auto& region : regions) sum += (region.bytes + line - 1) / line;
    return sum;
  };
  while (lines() > std::max<std::uint64_t>(kMostRows, 2 * regions.size())) line *= 2;
  return static_cast<double>(line);
}

// Neighbours in one cell of an address grid, drawn as one: blocks[first, first + count).
struct Drawn {
  std::size_t first = 0, count = 0, largest = 0;
};

// Every block, or, where there are too many to draw, those that lie together within a pixel or so as one. Nothing that is live is
// left out: what is not drawn would look free.
std::vector<Drawn> drawn_blocks(const analyze::AddressMap& map, double line_bytes) {
  const std::vector<analyze::MapBlock>& blocks = map.blocks;
  std::vector<Drawn> out;
  auto cell_bytes = static_cast<analyze::Bytes>(blocks.size() <= kMostBlocks ? 0 : line_bytes / kCellsOfALine);
  do {
    out.clear();
    const auto cell = [&](std::size_t i, analyze::Bytes offset) {
      return (blocks[i].address + offset - map.regions[blocks[i].region].address) / cell_bytes;
    };
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (cell_bytes > 0 && !out.empty()) {
        Drawn& last = out.back();
        if (blocks[last.first].region == blocks[i].region &&
            cell(last.first, 0) == cell(i, std::max<analyze::Bytes>(1, blocks[i].granted) - 1)) {
          ++last.count;
          if (blocks[i].granted > blocks[last.largest].granted) last.largest = i;
          continue;
        }
      }
      out.push_back({i, 1, i});
    }
    cell_bytes *= 2;
  } while (out.size() > kMostBlocks && cell_bytes > 0 && cell_bytes <= map.pool_bytes);
  return out;
}

void add_regions(const analyze::AddressMap& map, const std::vector<analyze::RegionNote>& notes, PoolMap& out) {
  for (std::size_t i = 0; i < map.regions.size(); ++i) {
    const analyze::Region& region = map.regions[i];
    out.regions.push_back({.number = i,
                           .address = region.address,
                           .bytes = static_cast<double>(region.bytes),
                           .live = static_cast<double>(region.live),
                           .note = notes[i].text,
                           .signal = notes[i].taken_now});
  }
}

void add_blocks(const analyze::AddressMap& map, PoolMap& out) {
  for (const std::string_view name : analyze::category_names()) out.categories.emplace_back(name);
  out.labels = map.labels;
  const double now = static_cast<double>(std::max<std::uint64_t>(1, map.time_us));
  for (const Drawn& drawn : drawn_blocks(map, out.line_bytes)) {
    const analyze::MapBlock& first = map.blocks[drawn.first];
    const analyze::MapBlock& last = map.blocks[drawn.first + drawn.count - 1];
    const analyze::MapBlock& largest = map.blocks[drawn.largest];
    out.regions[first.region].blocks += drawn.count;
    out.id.push_back(static_cast<double>(largest.id));
    out.region.push_back(first.region);
    out.offset.push_back(static_cast<double>(first.address - map.regions[first.region].address));
    out.bytes.push_back(static_cast<double>(last.address + last.granted - first.address));
    out.count.push_back(static_cast<double>(drawn.count));
    out.label.push_back(largest.label);
    out.category.push_back(largest.category);
    out.age.push_back(1 - static_cast<double>(largest.birth_us) / now);
    const auto members = std::span(map.blocks).subspan(drawn.first, drawn.count);
    out.faded.push_back(std::ranges::all_of(members, &analyze::MapBlock::faded) ? 1 : 0);
  }
}

}  // namespace

Result<PoolMap> EngineService::map(const MapParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const auto moment = engine.resolve(usable_instant(engine, params.at));
  if (!moment) return std::unexpected(moment.error());
  const auto names = engine.pool_names();
  const analyze::OomEvent* failed = analyze::failure_at(trace.ooms(), *moment);
  analyze::MapRequest request{.at = fmt::format("moment:{}", *moment), .where = params.filter};
  if (!params.pool.empty()) {
    const auto at = std::find(names.begin(), names.end(), params.pool);
    if (at == names.end()) return fail(fmt::format("unknown pool \"{}\"", params.pool));
    request.pool = at - names.begin();
  } else if (failed != nullptr) {
    const FailedPool pool = failed_pool(engine, failed->pool);  // holes of another pool could not have served the request
    request.place = pool.place;
    request.pool = pool.pool;
  }
  const auto map = engine.address_map(request);
  if (!map) return std::unexpected(map.error());
  const auto& frag = trace.fragmentation();
  if (!frag) return std::unexpected(frag.error());
  PoolMap out;
  out.moment = *moment;
  // A failed request is no event of the pool: its own time, not that of the event before it.
  const std::uint64_t time_us = failed != nullptr ? failed->time_us : map->time_us;
  out.t = static_cast<double>(time_us);
  out.pool = params.pool;
  for (const auto& region : map->regions)
    if (region.pool < names.size() && std::find(out.pools.begin(), out.pools.end(), names[region.pool]) == out.pools.end())
      out.pools.push_back(names[region.pool]);
  if (const analyze::Step* step = analyze::step_at(trace.steps(), time_us)) out.step_label = analyze::step_text(*step, time_us);
  out.link = analyze::instant_text(engine, *moment);
  out.matters = analyze::notable_instants(engine, trace.ooms(), &*frag);
  const std::string remedy = failed != nullptr ? remedy_of_failure(trace) : std::string();  // findings take time
  analyze::PoolInstant about = analyze::pool_instant(engine, *map, *frag, trace.ooms(), remedy);
  out.sentence = std::move(about.sentence);
  out.note = std::move(about.note);
  out.summary = std::move(about.summary);
  out.missing = analyze::absence(*map);
  if (out.missing) return out;
  auto history = pool_over_time(engine, 0, trace.overview().duration_us + 1);
  if (!history) return std::unexpected(history.error());
  out.history_t = std::move(history->t);
  out.history_pool = std::move(history->held);
  out.history_live = std::move(history->live);
  out.line_bytes = line_bytes_for(map->regions);
  add_regions(*map, about.regions, out);
  add_blocks(*map, out);
  out.request = std::move(about.request);
  return out;
}

Result<Block> EngineService::block(const BlockParams& params) {
  const auto found = library_->trace(params.trace);
  if (!found) return std::unexpected(found.error());
  const Opened& trace = **found;
  const analyze::Engine& engine = trace.engine();
  const auto block = engine.allocation(params.id);
  if (!block) return std::unexpected(block.error());
  Block out;
  out.id = block->id;
  out.op = block->op.empty() ? block->name : block->op;
  out.layer = block->layer;
  out.line = block->line;
  out.category = block->category;
  out.known = block->known;
  out.shape = block->shape;
  out.dtype = block->dtype;
  out.requested = static_cast<double>(block->requested);
  out.granted = static_cast<double>(block->granted);
  out.born = static_cast<double>(block->birth_us);
  if (block->death != analyze::kNever) {
    out.died = static_cast<double>(block->death_us);
    out.lives_us = static_cast<double>(block->death_us - block->birth_us);
  }
  if (block->step > 0) out.born_step = block->step;
  out.address = block->address;
  out.pool = block->pool_name;
  for (const analyze::Frame& frame : engine.stack(block->stack)) {
    if (out.stack.size() >= 40) break;
    out.stack.push_back(fmt::format("{} {}:{}", frame.function, frame.file, frame.line));
  }
  return out;
}

}  // namespace vramscope::serve
