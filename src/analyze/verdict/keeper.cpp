#include "analyze/verdict/keeper.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analyze/attribute/tags.h"
#include "analyze/index/lifetime.h"
#include "analyze/verdict/newest_reports.h"
#include "analyze/verdict/survivors.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

// When the last examined step ended: at exit a program frees everything.
Moment end_of_steps(const Engine::State& s) {
  const StepWindow window = examined_steps(s);
  if (!window.steps.empty()) return step_ends(s.store, window).back();
  return s.store.steps.empty() ? s.store.events() : std::min<Moment>(s.store.steps.back().end, s.store.events());
}

// The Python side names the tensors that it found in a container by this (python/vramscope/_hooks/holding.py).
std::string name_of_tensors(const Store& store, const trace::HeldTensors& held) {
  return fmt::format("kept in {} ({}:{})", store.text(held.name), store.text(held.file), held.line);
}

// Blocks without an op and a line have nothing in common.
bool has_origin(const Store& store, std::uint64_t alloc) {
  const Kind& kind = store.kind_of(alloc);
  return kind.line != 0 || !store.text(store.site_of(kind).op).empty();
}

// The live blocks by address, as they are in a burst of tags.
std::map<std::uint64_t, std::uint32_t> blocks_at(const Store& store, Moment at) {
  std::map<std::uint64_t, std::uint32_t> out;
  for_each_live(store, at, [&](std::uint32_t alloc) { out.emplace(store.address[alloc], alloc); });
  return out;
}

// From the tags themselves: one name for many blocks looks like a variable that moved, and the blocks that it seems to have left
// are not in `store.tagged`. The first burst and the last ones show all origins; each costs a pass over the live set.
void find_origins(const Store& store, const std::vector<trace::HeldTensors>& held, std::vector<Keeper>& out) {
  constexpr std::size_t kMostBursts = 8;
  std::map<std::string, std::size_t, std::less<>> by_name;
  for (std::size_t i = 0; i < held.size(); ++i) by_name.emplace(name_of_tensors(store, held[i]), i);
  std::vector<std::pair<Moment, std::vector<std::pair<std::uint64_t, std::size_t>>>> bursts;  // address, keeper
  for (const Stamped<trace::Tag>& tag : store.tags) {
    const auto found = by_name.find(store.text(tag.row.name));
    if (found == by_name.end()) continue;
    if (bursts.empty() || tag.pos >= bursts.back().first + kEventsOfBurst) bursts.push_back({tag.pos, {}});
    bursts.back().second.emplace_back(tag.row.address, found->second);
  }
  if (bursts.size() > kMostBursts) bursts.erase(bursts.begin() + 1, bursts.end() - (kMostBursts - 1));
  for (const auto& [at, tags] : bursts) {
    const auto blocks = blocks_at(store, at);
    for (const auto& [address, keeper] : tags) {
      auto block = blocks.upper_bound(address);
      if (block == blocks.begin()) continue;
      --block;
      if (!has_origin(store, block->second)) continue;
      if (address - block->first >= store.kind_of(block->second).granted) continue;
      std::vector<std::uint64_t>& origins = out[keeper].origins;
      const std::uint64_t key = origin_key(store, block->second);
      if (std::ranges::find(origins, key) == origins.end()) origins.push_back(key);
    }
  }
}

void count(const Store& store, std::uint32_t alloc, Keeper& keeper) {
  keeper.tensors += 1;
  keeper.bytes += store.kind_of(alloc).granted;
}

using PlaceAndSize = std::tuple<std::uint32_t, std::uint32_t, Bytes>;  // line, layer

PlaceAndSize place_and_size(const Store& store, std::uint32_t alloc) {
  const Kind& kind = store.kind_of(alloc);
  return {kind.line, store.attributes_of(alloc).layer(), kind.granted};
}

void count_tensors(const Store& store, Moment at, std::vector<Keeper>& out) {
  std::vector<Keeper*> known;
  for (Keeper& keeper : out)
    if (!keeper.origins.empty()) known.push_back(&keeper);
  if (known.empty()) return;
  for (Keeper* keeper : known)
    *keeper = Keeper{keeper->name, keeper->container, keeper->owner, keeper->line, 0, 0, true, keeper->origins};
  std::vector<std::uint32_t> others;
  std::map<PlaceAndSize, Keeper*> seen;  // nullptr: several keepers
  for_each_live(store, at, [&](std::uint32_t alloc) {
    const std::uint64_t key = origin_key(store, alloc);
    bool kept = false;
    for (Keeper* keeper : known) {
      if (std::ranges::find(keeper->origins, key) == keeper->origins.end()) continue;
      count(store, alloc, *keeper);
      const auto [at_place, fresh] = seen.try_emplace(place_and_size(store, alloc), keeper);
      if (!fresh && at_place->second != keeper) at_place->second = nullptr;
      kept = true;
    }
    if (!kept && store.kind_of(alloc).line != 0) others.push_back(alloc);
  });
  // An op may hand on the memory of its input as its result, depending on which of several ops ran first. The memory then has the
  // name of the other op, but its place in the program and its size are the same.
  for (const std::uint32_t alloc : others)
    if (const auto found = seen.find(place_and_size(store, alloc)); found != seen.end() && found->second != nullptr)
      count(store, alloc, *found->second);
}

}  // namespace

std::vector<Keeper> keepers(const Engine::State& s, const std::vector<LeakRow>& rows) {
  const Store& store = s.store;
  const auto held = newest_reports<trace::HeldTensors>(store);
  std::vector<Keeper> out;
  for (const trace::HeldTensors& each : held)
    out.push_back({std::string(store.text(each.name)),
                   std::string(store.text(each.container)),
                   std::string(store.text(each.owner)),
                   reported_line(store, each),
                   each.count,
                   each.bytes,
                   false,
                   {}});
  find_origins(store, held, out);
  // One container and one origin that grows belong together, even if the container's tensors are not known.
  const bool one = out.size() == 1 && out[0].origins.empty() && rows.size() == 1 && !rows[0].examples.empty();
  if (one && has_origin(store, rows[0].examples[0])) out[0].origins = {origin_key(store, rows[0].examples[0])};
  count_tensors(store, end_of_steps(s), out);
  std::ranges::stable_sort(out, std::ranges::greater{}, &Keeper::bytes);
  return out;
}

const Keeper* main_keeper(const Store& store, const std::vector<Keeper>& keepers, const std::vector<LeakRow>& rows) {
  for (const LeakRow& row : rows) {
    if (row.replaced || row.examples.empty()) continue;
    const std::uint64_t key = origin_key(store, row.examples[0]);
    for (const Keeper& keeper : keepers)
      if (std::ranges::find(keeper.origins, key) != keeper.origins.end()) return &keeper;
  }
  const bool one = keepers.size() == 1 && keepers[0].origins.empty() && !rows.empty() && !rows[0].replaced;
  return one ? &keepers[0] : nullptr;
}

std::string held_text(const Keeper& keeper) {
  return fmt::format("{} {}{}", keeper.counted ? "holds" : "held", support::format_plural(keeper.tensors, "tensor", "tensors"),
                     keeper.counted ? "" : " when last sampled");
}

std::string in_words(const Keeper& keeper) { return fmt::format("{} ({})", keeper.name, keeper.line); }

}  // namespace vramscope::analyze
