#include <algorithm>
#include <map>
#include <new>

#include <fmt/format.h>

#include "analyze/api.h"
#include "analyze/attribute/categories.h"
#include "analyze/build.h"
#include "analyze/gen/texts.h"
#include "analyze/index/pools.h"
#include "analyze/query/block_text.h"
#include "analyze/query/state.h"
#include "analyze/work.h"
#include "support/memory_budget.h"
#include "trace/cut_stack.h"

namespace vramscope::analyze {

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::open(const std::filesystem::path& trace, const OpenOptions& options) try {
  auto store = open_store(trace, options);
  if (!store) return std::unexpected(store.error());
  auto state = std::make_unique<State>(std::move(*store));
  State& s = *state;
  s.threads = std::max(1u, options.threads);
  s.figures = pool_figures(s.store);
  s.places = places_of(s.store.dictionaries());
  s.main = static_cast<int>(s.store.counts.main_place) - 1;
  if (s.main >= static_cast<int>(s.places.size())) s.main = -1;
  auto measures = s.store.index().table<StepMeasure>(Section::step_measures);
  s.measures.assign(measures.begin(), measures.end());
  s.steady = steady_state(s.store, s.measures);
  auto peaks = s.store.index().table<PlacePeak>(Section::place_peaks);
  for (std::size_t i = 0; i < s.places.size() && i < peaks.size(); ++i) {
    Place& p = s.places[i];
    p.allocs = peaks[i].allocs;
    p.peak = peaks[i].peak;
    p.peak_at = peaks[i].peak_at;
    p.end = peaks[i].end;
    p.steady = s.steady.has;
    p.steady_peak = peaks[i].steady_peak;
    p.steady_peak_at = peaks[i].steady_peak_at;
    measure_pools(s.store, p);
    settle(p, s.figures);
  }
  for (const Place& place : s.places) s.levels.push_back(region_levels(s.store, place));
  if (s.main >= 0) {
    auto leaves = s.store.index().table<Leaf>(Section::pyramid_leaves);
    auto start = s.store.index().table<Bytes>(Section::pyramid_start), peak = s.store.index().table<Bytes>(Section::pyramid_peak);
    auto view = std::make_shared<View>();
    view->grouper =
        std::make_unique<Grouper>(s.store, s.pools(s.places[static_cast<std::size_t>(s.main)]), By::category, nullptr, 0, kShown);
    if (!leaves.empty() && start.size() == leaves.size() * kShown && peak.size() == start.size()) {
      view->pyramid = Pyramid::view(kShown, leaves, start, peak);
      s.main_view = std::move(view);
    }
  }
  return Engine(std::move(state));
} catch (const std::bad_alloc&) {
  return not_enough_memory(trace);
}

std::unexpected<Error> not_enough_memory(const std::filesystem::path& trace) {
  return fail(fmt::format("{}: {}", trace.string(), support::kNotEnoughMemory));
}

std::span<const Place> Engine::places() const { return state_->places; }
int Engine::main_place() const { return state_->main; }
std::uint64_t work_of(const Engine& engine) { return engine.state().store.work.total(); }

std::vector<std::string> Engine::pool_names() const {
  std::vector<std::string> out;
  for (const trace::Pool& pool : state_->store.dictionaries().pools) out.emplace_back(state_->store.text(pool.name));
  return out;
}

Result<Moment> Engine::resolve(std::string_view instant, int place) const { return state_->resolve(instant, place); }
Moment Engine::moment_at(std::uint64_t time_us) const { return state_->store.moment_at(time_us); }
std::uint64_t Engine::time_of(Moment at) const { return state_->store.time_of(at); }

Bytes Engine::live_at(Moment at, int place) const {
  auto view = state_->total(place);
  return view ? state_->live_at(**view, at) : 0;
}

Bytes Engine::regions_at(Moment at, int place) const {
  auto where = state_->place(place);
  return where ? state_->regions_at(**where, at) : 0;
}

Status Engine::check_filter(std::string_view where) const {
  auto filter = state_->filter(where);
  if (!filter) return std::unexpected(filter.error());
  return {};
}

Status Engine::check_matches(std::string_view where, int place) const {
  auto filter = state_->filter(where, kNever, place == kEveryPlace ? -1 : place);
  if (!filter) return std::unexpected(filter.error());
  if (filter->everything()) return {};
  std::string on(kInTheTrace);
  PoolSet pools(state_->store.dictionaries().pools.size(), 1);
  if (place != kEveryPlace) {
    auto one = state_->place(place);
    if (!one) return std::unexpected(one.error());
    pools = state_->pools(**one);
    on = "on " + (*one)->name;
  }
  const Grouper blocks(state_->store, pools, &*filter);
  for (std::uint64_t alloc = 0; alloc < state_->store.allocs(); ++alloc)
    if (blocks.of(alloc) != kOut) return {};
  return fail(no_block_matches(on, where));
}

std::vector<Frame> Engine::stack(std::uint32_t id) const {
  const Store& store = state_->store;
  std::vector<Frame> out;
  if (id >= store.dictionaries().stacks.size()) return out;
  for (trace::FrameId f : store.dictionaries().stacks[id].frames) {
    auto i = static_cast<std::size_t>(f);
    if (i >= store.dictionaries().frames.size()) continue;
    const trace::Frame& frame = store.dictionaries().frames[i];
    out.push_back({std::string(store.text(frame.function)), std::string(store.text(frame.file)), frame.line, frame.offset});
  }
  if (const std::uint64_t cut = store.dictionaries().stacks[id].cut; cut > 0) out.push_back({trace::more_frames(cut), "", 0, 0});
  return out;
}

std::span<const std::string_view> category_names() { return kCategoryNames; }

}  // namespace vramscope::analyze
