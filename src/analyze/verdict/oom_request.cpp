#include "analyze/verdict/oom_request.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "analyze/attribute/attribute.h"
#include "analyze/attribute/op_names.h"
#include "analyze/framework.h"
#include "analyze/index/lifetime.h"
#include "analyze/query/block_text.h"
#include "analyze/verdict/program_plan.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kMostSearched = 4'000'000;  // allocations: thousands of steps

// The newest block before the failure that the same op requested for the same purpose, or kNone32.
std::uint32_t earlier_block(const Store& store, const trace::Site& wanted, Moment at) {
  const auto& sites = store.dictionaries().sites;
  std::vector<char> same(store.kinds.size(), 0);
  bool any = false;
  for (std::size_t k = 0; k < same.size(); ++k) {
    const trace::Site& site = sites[store.kinds[k].site];
    same[k] = site.op == wanted.op && site.region == wanted.region && site.pool == wanted.pool ? 1 : 0;
    any = any || same[k] != 0;
  }
  if (!any) return kNone32;
  const auto born = static_cast<std::size_t>(std::ranges::lower_bound(store.birth, at) - store.birth.begin());
  for (std::size_t a = born, least = born - std::min(born, kMostSearched); a-- > least;)
    if (store.kind[a] < same.size() && same[store.kind[a]] != 0) return static_cast<std::uint32_t>(a);
  return kNone32;
}

Shown by_stage(const OpMeaning& meaning) {
  if (meaning.category != trace::Category::unknown) return shown(meaning.category);
  if (meaning.stage == Stage::backward) return Shown::activation_gradients;
  return meaning.stage == Stage::forward && !meaning.layer.empty() ? Shown::activations : Shown::unknown;
}

}  // namespace

OomRequest request_of(const Engine::State& state, const FailedPool& where, const Stamped<trace::Oom>& oom) {
  const Store& store = state.store;
  const trace::Site& site = store.dictionaries().sites[static_cast<std::size_t>(oom.row.site)];
  const trace::Pool& pool = store.dictionaries().pools[where.pool];
  const OpMeaning meaning = meaning_of(store.text(site.op), store.text(site.region), pool.framework);
  OomRequest out{by_stage(meaning), std::string(meaning.layer), line_of(store, site)};
  const bool has_op = !store.text(site.op).empty();
  if (const std::uint32_t alloc = has_op ? earlier_block(store, site, oom.pos) : kNone32; alloc != kNone32) {
    const Attributes attributes = store.attributes_of(alloc);
    if (shown(attributes.category()) != Shown::unknown) out.category = shown(attributes.category());
    out.layer = store.name(attributes.layer());
  }
  if (out.category == Shown::unknown)
    if (const auto plan = plan_of(store, store.text(site.op)); plan && is_for_temporaries(*plan, site.requested))
      out.category = Shown::xla_temporaries;
  return out;
}

std::string in_words(const OomRequest& request) {
  std::string out = request.category == Shown::unknown ? "" : std::string(name_of(request.category));
  if (!request.layer.empty() && !request.layer.starts_with('('))
    out += fmt::format("{} {}", out.empty() ? "memory of" : " of", request.layer);
  if (!out.empty() && !request.line.empty()) out += fmt::format(" ({})", request.line);
  return out;
}

bool grows_with_batch(Shown category) {
  return category == Shown::activations || category == Shown::activation_gradients || category == Shown::inputs ||
         category == Shown::workspace || category == Shown::temporaries || category == Shown::xla_temporaries;
}

LiveAtOom live_at_oom(const Store& store, const PoolSet& pools, Moment at) {
  LiveAtOom out;
  std::map<std::uint32_t, Bytes> activations;  // by layer
  for_each_live(store, at, [&](std::uint32_t alloc) {
    const Kind& kind = store.kind_of(alloc);
    if (kind.pool >= pools.size() || pools[kind.pool] == 0) return;
    const Attributes attributes = store.attributes_of(alloc);
    const Shown category = shown(attributes.category());
    // A block from before the steps does not depend on this batch. What the allocator added to a block does not either, but a
    // smaller one would not have it.
    const bool in_step = step_index(store, store.birth[alloc]) >= 0;
    if (grows_with_batch(category) && in_step)
      out.with_batch += std::min(kind.requested, kind.granted);
    else
      out.fixed += kind.granted;
    if (category == Shown::parameters) out.parameters += kind.granted;
    if (category == Shown::optimizer_state) out.optimizer_state += kind.granted;
    if (category == Shown::activations && attributes.layer() != 0) activations[attributes.layer()] += kind.granted;
  });
  const auto most = std::ranges::max_element(activations, {}, [](const auto& layer) { return layer.second; });
  if (most != activations.end() && !store.name(most->first).starts_with('(')) {
    out.largest_layer = store.name(most->first);
    out.largest_activations = most->second;
  }
  return out;
}

unsigned fitting_percent(const LiveAtOom& live, const OomRequest& request, Bytes requested, Bytes capacity) {
  const Bytes with_batch = live.with_batch + requested;
  if (!grows_with_batch(request.category) || capacity <= live.fixed || with_batch == 0) return 0;
  const double part = static_cast<double>(capacity - live.fixed) / static_cast<double>(with_batch);
  return static_cast<unsigned>(100 * std::min(part, 0.99));
}

}  // namespace vramscope::analyze
