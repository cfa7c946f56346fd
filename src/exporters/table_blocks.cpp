// One row per block, and one per allocation and free.
#include <bit>
#include <vector>

#include "analyze/block_rows.h"
#include "exporters/identity.h"
#include "exporters/table_list.h"

namespace vramscope::exporters {

namespace {

using analyze::BlockRow;
using analyze::kNever;

struct BlockContent {
  BlockRow block;
  const analyze::Place& place;
};
using BlockOf = Identified<BlockContent>;

std::optional<std::uint64_t> unless_never(std::uint64_t value) { return value == kNever ? std::nullopt : std::optional(value); }

// floor(log2(lifetime in events)); 63: live at the end. Sorted by it, few row groups hold blocks that live at one instant.
std::uint64_t lifetime_class(const BlockRow& block) {
  return block.death == kNever ? 63 : static_cast<std::uint64_t>(std::bit_width(block.death - block.birth)) - 1;
}

constexpr std::array kBlocks = {
    VS_IDENTITY(BlockOf),
    VS_COLUMN(BlockOf, "block", r.of.block.id),
    VS_COLUMN(BlockOf, "place", std::string_view(r.of.place.name)),
    VS_COLUMN(BlockOf, "level", std::string_view(r.of.place.driver ? "driver" : "tensor")),
    VS_COLUMN(BlockOf, "device", r.of.place.device),
    VS_COLUMN(BlockOf, "pool", std::string_view(r.of.block.texts->pool)),
    VS_COLUMN(BlockOf, "address", r.of.block.address),
    VS_COLUMN(BlockOf, "requested", r.of.block.requested),
    VS_COLUMN(BlockOf, "granted", r.of.block.granted),
    VS_COLUMN(BlockOf, "alloc_us", r.of.block.birth_us),
    VS_COLUMN(BlockOf, "free_us", unless_never(r.of.block.death_us)),
    VS_COLUMN(BlockOf, "alloc_moment", r.of.block.birth),
    VS_COLUMN(BlockOf, "free_moment", unless_never(r.of.block.death)),
    VS_COLUMN(BlockOf, "lifetime_class", lifetime_class(r.of.block)),
    VS_COLUMN(BlockOf, "step", r.of.block.step),
    VS_COLUMN(BlockOf, "category", r.of.block.category),
    VS_COLUMN(BlockOf, "known", r.of.block.known),
    VS_COLUMN(BlockOf, "layer", r.of.block.layer),
    VS_COLUMN(BlockOf, "phase", r.of.block.phase),
    VS_COLUMN(BlockOf, "op", std::string_view(r.of.block.texts->op)),
    VS_COLUMN(BlockOf, "region", std::string_view(r.of.block.texts->region)),
    VS_COLUMN(BlockOf, "dtype", std::string_view(r.of.block.texts->dtype)),
    VS_COLUMN(BlockOf, "shape", std::string_view(r.of.block.texts->shape)),
    VS_COLUMN(BlockOf, "line", std::string_view(r.of.block.texts->line)),
    VS_COLUMN(BlockOf, "name", r.of.block.name),
    VS_COLUMN(BlockOf, "owner", std::string_view(r.of.block.texts->owner)),
    VS_COLUMN(BlockOf, "stream", r.of.block.stream),
    VS_COLUMN(BlockOf, "stack", r.of.block.stack),
};
constexpr auto kBlockHeads = heads(kBlocks);

Status block_rows(const Request& request, RowSink& sink) {
  const Identity trace = identity_of(request);
  const auto places = request.engine.places();
  analyze::BlockRows rows(request.engine);
  for (std::uint64_t id = 0; id < rows.size(); ++id) {
    if (!rows.recorded(id)) continue;
    const BlockRow block = rows.row(id);
    const BlockContent content{block, places[block.place]};
    if (!put_row<BlockOf>(kBlocks, {trace, content}, sink)) break;
  }
  return {};
}

struct EventContent {
  analyze::Moment moment;
  std::uint64_t time_us;
  bool is_free;
  std::uint64_t block;
  std::string_view place;
  std::int64_t change;
  std::uint64_t live;
};
using EventOf = Identified<EventContent>;

constexpr std::array kEvents = {
    VS_IDENTITY(EventOf),
    VS_COLUMN(EventOf, "moment", r.of.moment),
    VS_COLUMN(EventOf, "time_us", r.of.time_us),
    VS_COLUMN(EventOf, "event", std::string_view(r.of.is_free ? "free" : "alloc")),
    VS_COLUMN(EventOf, "block", r.of.block),
    VS_COLUMN(EventOf, "place", r.of.place),
    VS_COLUMN(EventOf, "change", r.of.change),
    VS_COLUMN(EventOf, "live", r.of.live),
};
constexpr auto kEventHeads = heads(kEvents);

Status event_rows(const Request& request, RowSink& sink) {
  const Identity trace = identity_of(request);
  const auto places = request.engine.places();
  std::vector<std::uint64_t> live(places.size());
  analyze::BlockRows rows(request.engine);
  rows.each_event([&](analyze::Moment moment, const analyze::RowEvent& event) {
    const BlockRow block = rows.row(event.block);
    const auto size = static_cast<std::int64_t>(block.granted);
    live[block.place] += event.is_free ? -block.granted : block.granted;
    const EventContent content{
        moment,           event.time_us, event.is_free, event.block, places[block.place].name, event.is_free ? -size : size,
        live[block.place]};
    return put_row<EventOf>(kEvents, {trace, content}, sink);
  });
  return {};
}

}  // namespace

Table blocks_table() { return {"blocks", kBlockHeads, block_rows}; }
Table events_table() { return {"events", kEventHeads, event_rows}; }

}  // namespace vramscope::exporters
