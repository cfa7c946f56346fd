#include "analyze/block_rows.h"

#include "analyze/attribute/categories.h"
#include "analyze/query/block_text.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {

BlockRows::BlockRows(const Engine& engine) : engine_(engine), place_of_pool_(engine.pool_names().size(), -1) {
  const auto places = engine.places();
  for (std::size_t i = 0; i < places.size(); ++i)
    for (const std::uint32_t pool : places[i].pools)
      if (pool < place_of_pool_.size()) place_of_pool_[pool] = static_cast<int>(i);
  texts_.resize(engine.state().store.kinds.size() + 1);  // the last: of blocks without a kind
}

BlockRows::~BlockRows() = default;

std::uint64_t BlockRows::size() const { return engine_.state().store.allocs(); }

bool BlockRows::recorded(std::uint64_t id) const { return engine_.state().store.birth[id] != kNone32; }

int BlockRows::place_of_pool(std::uint32_t pool) const { return pool < place_of_pool_.size() ? place_of_pool_[pool] : -1; }

std::string_view BlockRows::framework_of(int place) const {
  const auto& pools = engine_.state().store.dictionaries().pools;
  for (const std::uint32_t pool : engine_.places()[static_cast<std::size_t>(place)].pools)
    if (pool < pools.size() && pools[pool].framework != trace::Framework::none) return trace::name_of(pools[pool].framework);
  return "none";
}

BlockRow BlockRows::row(std::uint64_t id) {
  const Store& store = engine_.state().store;
  const Kind& kind = store.kind_of(id);
  const Attributes attributes = store.attributes_of(id);
  BlockRow out;
  out.id = id;
  out.address = store.address[id];
  out.requested = kind.requested;
  out.granted = kind.granted;
  out.birth = Moment{store.birth[id]} + 1;
  out.birth_us = store.time_of_event(store.birth[id]);
  if (store.death[id] != kNone32) {
    out.death = Moment{store.death[id]} + 1;
    out.death_us = store.time_of_event(store.death[id]);
  }
  out.pool = kind.pool;
  out.place = static_cast<std::uint32_t>(std::max(0, place_of_pool(kind.pool)));
  const trace::Site& site = store.site_of(kind);
  out.stream = site.stream;
  out.stack = static_cast<std::uint32_t>(site.stack);
  const std::int64_t step = step_index(store, store.birth[id]);
  out.step = step < 0 ? 0 : store.steps[static_cast<std::size_t>(step)].number;
  out.kind = std::min<std::uint32_t>(store.kind[id], static_cast<std::uint32_t>(texts_.size() - 1));
  out.category = name_of(shown(attributes.category()));
  out.known = name_of(attributes.known());
  out.layer = store.name(attributes.layer());
  out.phase = name_of(attributes.stage());
  const auto tagged = std::ranges::lower_bound(store.tagged, id, {}, &TaggedRow::alloc);
  if (tagged != store.tagged.end() && tagged->alloc == id) out.name = store.text(static_cast<trace::StringId>(tagged->name));
  auto& texts = texts_[out.kind];
  if (!texts) {
    const auto text = [&](By by) { return kind_text(store, kind, by); };
    texts = std::make_unique<KindTexts>(KindTexts{.op = text(By::op),
                                                  .region = text(By::region),
                                                  .dtype = text(By::dtype),
                                                  .shape = text(By::shape),
                                                  .line = text(By::line),
                                                  .owner = text(By::owner),
                                                  .pool = text(By::pool)});
  }
  out.texts = texts.get();
  return out;
}

std::vector<RegionRow> BlockRows::regions() const {
  std::vector<RegionRow> out;
  for (const auto& region : engine_.state().store.regions)
    out.push_back({region.pos + 1, region.time_us, static_cast<std::uint32_t>(region.row.pool), region.row.address,
                   region.row.bytes, region.row.returned});
  return out;
}

Moment BlockRows::moments() const { return engine_.state().store.events(); }

bool BlockRows::event_before(Moment at, RowEvent& event) const {
  const Store& store = engine_.state().store;
  const std::uint32_t ref = store.ref[at - 1];
  if (ref == kNone32 || (ref >> 1) >= store.allocs()) return false;
  event = {ref >> 1, store.time_of_event(at - 1), (ref & 1) != 0};
  return true;
}

}  // namespace vramscope::analyze
