#include "analyze/query/all_blocks.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"
#include "analyze/query/filter_text.h"
#include "analyze/query/grouper.h"
#include "analyze/query/groups.h"
#include "analyze/query/state.h"

namespace vramscope::analyze {
namespace {

// What many blocks have in common; the step of a block's birth is its own.
constexpr std::array kFields = {By::category, By::layer, By::op,    By::line,   By::dtype, By::shape,
                                By::phase,    By::pool,  By::known, By::region, By::owner, By::name};

class Collector {
 public:
  explicit Collector(const Store& store) : store_(store), keys_(store) {
    for (const By by : kFields) out_.fields.emplace_back(by_names()[static_cast<std::size_t>(by)]);
  }

  void add(std::uint32_t alloc) {
    const Moment birth = Moment{store_.birth[alloc]} + 1;
    out_.id.push_back(alloc);
    out_.kind.push_back(kind_of(alloc));
    out_.step.push_back(text_id(block_text(store_, alloc, By::step)));
    out_.birth.push_back(birth);
    out_.lives.push_back(store_.death[alloc] == kNone32 ? 0 : Moment{store_.death[alloc]} + 1 - birth);
    out_.born_us.push_back(store_.time_of(birth));
  }
  AllBlocks take() { return std::move(out_); }

 private:
  std::uint32_t kind_of(std::uint32_t alloc) {
    const Kind& kind = store_.kind_of(alloc);
    std::string key = keys_.key(alloc, kFields);
    for (const Bytes size : {kind.granted, kind.requested}) key.append(reinterpret_cast<const char*>(&size), sizeof size);
    const auto [known, fresh] = known_.try_emplace(std::move(key), static_cast<std::uint32_t>(out_.granted.size()));
    if (fresh) {
      for (const By by : kFields) out_.kinds.push_back(text_id(block_text(store_, alloc, by)));
      out_.granted.push_back(kind.granted);
      out_.requested.push_back(kind.requested);
    }
    return known->second;
  }
  std::uint32_t text_id(std::string text) {
    const auto [known, fresh] = texts_.try_emplace(std::move(text), static_cast<std::uint32_t>(out_.texts.size()));
    if (fresh) out_.texts.push_back(known->first);
    return known->second;
  }

  const Store& store_;
  GroupKeys keys_;
  std::unordered_map<std::string, std::uint32_t> known_, texts_;
  AllBlocks out_;
};

}  // namespace

Result<AllBlocks> all_blocks(const Engine& engine, std::optional<Moment> live_at) {
  const Engine::State& state = engine.state();
  const Store& store = state.store;
  const auto place = state.place(-1);
  if (!place) return std::unexpected(place.error());
  const Grouper grouper(store, state.pools(**place), nullptr);
  std::vector<std::uint32_t> blocks;
  const auto take = [&](std::uint32_t alloc) {
    if (grouper.of(alloc) != kOut) blocks.push_back(alloc);
  };
  if (live_at) {
    for_each_live(store, *live_at, take);
    std::ranges::sort(blocks);
  } else {
    for (std::uint32_t alloc = 0; alloc < store.allocs(); ++alloc)
      if (store.birth[alloc] != kNone32) take(alloc);
    store.work.add(store.allocs());
  }
  Collector collector(store);
  for (const std::uint32_t alloc : blocks) collector.add(alloc);
  AllBlocks out = collector.take();
  for (Moment at = 0; !live_at && at <= store.events(); ++at) out.time_us.push_back(store.time_of(at));
  return out;
}

}  // namespace vramscope::analyze
