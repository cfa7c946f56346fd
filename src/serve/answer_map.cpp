// The address map of a pool, its holes and the request that made it grow; one block's details.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "serve/engine_service.h"
#include "serve/words.h"

namespace vramscope::serve {

namespace {

constexpr std::uint64_t kMostLines = 44;
constexpr std::size_t kMostBlocks = 60000;
constexpr double kCellsOfALine = 1024;  // about a pixel each
constexpr std::size_t kMostHoles = 8;

// A power of two, so that the pool fits the window.
double line_bytes_for(const std::vector<analyze::Region>& regions) {
  analyze::Bytes total = 0;
  for (const auto& region : regions) total += region.bytes;
  analyze::Bytes line = std::bit_ceil(std::max<analyze::Bytes>(4096, total / kMostLines));
  const auto lines = [&] {
    std::uint64_t sum = 0;
    for (const auto& region : regions) sum += (region.bytes + line - 1) / line;
    return sum;
  };
  while (lines() > std::max<std::uint64_t>(kMostLines, 2 * regions.size())) line *= 2;
  return static_cast<double>(line);
}

const analyze::Grown* growth_at(const analyze::Fragmentation& frag, std::uint64_t time_us) {
  for (const analyze::Grown& grown : frag.grown)
    if (grown.time_us == time_us || (time_us > grown.time_us && time_us - grown.time_us < 1000)) return &grown;
  return nullptr;
}

std::vector<Hole> largest_holes(const analyze::AddressMap& map) {
  std::vector<analyze::Hole> sorted(map.holes);
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::vector<Hole> out;
  for (std::size_t i = 0; i < std::min(kMostHoles, sorted.size()); ++i)
    out.push_back({sorted[i].region, static_cast<double>(sorted[i].bytes), 1});
  return out;
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

std::string region_note(const analyze::Region& region, std::uint64_t now_us, const analyze::Grown* grown) {
  if (grown != nullptr && region.since_us + 1000 > grown->time_us && region.since_us <= grown->time_us + 1000 &&
      region.bytes >= grown->request)
    return "taken now for this request";
  if (region.live > 0) return "";
  if (region.empty_since_step > 0) return fmt::format("empty since step {}", region.empty_since_step);
  return region.empty_since_us > 0 && region.empty_since_us <= now_us
             ? fmt::format("empty since {}", seconds_text(region.empty_since_us))
             : "empty";
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
  analyze::MapRequest request{.at = fmt::format("moment:{}", *moment), .where = {}};
  if (!params.pool.empty()) {
    const auto at = std::find(names.begin(), names.end(), params.pool);
    if (at == names.end()) return fail(fmt::format("there is no pool '{}'", params.pool));
    request.pool = at - names.begin();
  }
  const auto map = engine.address_map(request);
  if (!map) return std::unexpected(map.error());
  const auto& frag = trace.fragmentation();
  if (!frag) return std::unexpected(frag.error());
  PoolMap out;
  out.moment = *moment;
  out.t = static_cast<double>(map->time_us);
  out.pool = params.pool;
  for (const auto& region : map->regions)
    if (region.pool < names.size() && std::find(out.pools.begin(), out.pools.end(), names[region.pool]) == out.pools.end())
      out.pools.push_back(names[region.pool]);
  const analyze::Steps& steps = trace.steps();
  if (const analyze::Step* step = step_at(steps, map->time_us)) out.step_label = step_text(*step, map->time_us);
  out.sentence = frag->sentence;
  out.note = sentence(frag->advice);
  out.summary = fmt::format("{}, {}: {} live in {}, {} free in {}", plural(map->regions.size(), "region", "regions"),
                            size_text(map->pool_bytes), size_text(map->live), plural(map->blocks.size(), "block", "blocks"),
                            size_text(map->free), plural(map->holes.size(), "hole", "holes"));
  if (map->regions.empty()) {
    out.missing = Damage{"No regions were recorded",
                         "No pool took memory from the level below before this instant, or its regions were not seen.",
                         "Choose a later instant, or record from the start of the program with `vramscope run`."};
    return out;
  }
  const auto history =
      engine.stacked({.t0_us = 0, .t1_us = trace.overview().duration_us + 1, .width = kTileColumns / 2, .where = {}});
  if (!history) return std::unexpected(history.error());
  for (std::size_t i = 0; i < history->at.size(); ++i) {
    out.history_t.push_back(static_cast<double>(history->border_us[i]));
    out.history_pool.push_back(static_cast<double>(engine.regions_at(history->at[i])));
    out.history_live.push_back(static_cast<double>(history->high[i]));
  }
  out.line_bytes = line_bytes_for(map->regions);
  const analyze::Grown* grown = growth_at(*frag, map->time_us);
  for (std::size_t i = 0; i < map->regions.size(); ++i) {
    const analyze::Region& region = map->regions[i];
    Region to{.number = i,
              .address = region.address,
              .bytes = static_cast<double>(region.bytes),
              .live = static_cast<double>(region.live),
              .note = region_note(region, map->time_us, grown)};
    to.signal = to.note == "taken now for this request";
    out.regions.push_back(std::move(to));
  }
  for (const std::string_view name : analyze::category_names()) out.categories.emplace_back(name);
  out.labels = map->labels;
  const double now = static_cast<double>(std::max<std::uint64_t>(1, map->time_us));
  for (const Drawn& drawn : drawn_blocks(*map, out.line_bytes)) {
    const analyze::MapBlock& first = map->blocks[drawn.first];
    const analyze::MapBlock& last = map->blocks[drawn.first + drawn.count - 1];
    const analyze::MapBlock& largest = map->blocks[drawn.largest];
    out.regions[first.region].blocks += drawn.count;
    out.id.push_back(static_cast<double>(largest.id));
    out.region.push_back(first.region);
    out.offset.push_back(static_cast<double>(first.address - map->regions[first.region].address));
    out.bytes.push_back(static_cast<double>(last.address + last.granted - first.address));
    out.count.push_back(static_cast<double>(drawn.count));
    out.label.push_back(largest.label);
    out.category.push_back(largest.category);
    out.age.push_back(1 - static_cast<double>(largest.birth_us) / now);
  }
  if (grown != nullptr) {
    Request growth{.bytes = static_cast<double>(grown->request), .t = static_cast<double>(grown->time_us)};
    growth.note = fmt::format("{} free in {}, largest {}; the pool grew by {}", size_text(grown->free),
                              plural(grown->holes, "hole", "holes"), size_text(grown->largest_hole), size_text(grown->grew_by));
    if (const auto before = engine.address_map({.at = fmt::format("moment:{}", grown->at > 0 ? grown->at - 1 : 0), .where = {}}))
      growth.holes = largest_holes(*before);
    out.request = std::move(growth);
  } else if (!map->holes.empty() && frag->worst.request > 0) {
    out.request = Request{.bytes = static_cast<double>(frag->worst.request),
                          .t = static_cast<double>(frag->worst.time_us),
                          .note = "the largest recent request, against the holes of this instant",
                          .holes = largest_holes(*map)};
  }
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
