#include "analyze/query/state.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analyze/absent.h"
#include "analyze/query/block_text.h"
#include "analyze/query/filter_text.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kKeptViews = 16;

}  // namespace

Result<const Place*> Engine::State::place(int index) const {
  if (index < 0) index = main;
  if (index < 0) return fail(std::string(kNoAllocations));
  if (static_cast<std::size_t>(index) >= places.size())
    return fail(fmt::format("there is no place {}; the trace has {}", index, places.size()));
  return &places[static_cast<std::size_t>(index)];
}

Result<Filter> Engine::State::filter(std::string_view where, Moment now, int place) const {
  FilterContext context;
  context.now = now;
  context.resolve = [this, place](std::string_view instant) { return resolve(instant, place); };
  return Filter::compile(where, store, context);
}

Result<std::shared_ptr<const View>> Engine::State::view(int place_index, By by, std::string_view where, std::size_t bands) const {
  const bool is_main = place_index < 0 || place_index == main;
  if (is_main && by == By::category && where.empty() && main_view) return main_view;
  const auto entry = kept(fmt::format("{}|{}|{}|{}", is_main ? main : place_index, static_cast<int>(by), bands, where));
  entry->once.call([&] { entry->view = build(place_index, by, where, bands); });
  return entry->view;
}

std::shared_ptr<Engine::State::Kept> Engine::State::kept(std::string key) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(views_, key, [](const auto& entry) -> const std::string& { return entry->key; });
  if (found != views_.end()) {
    views_.splice(views_.begin(), views_, found);
  } else {
    views_.push_front(std::make_shared<Kept>());
    views_.front()->key = std::move(key);
    if (views_.size() > kKeptViews) views_.pop_back();
  }
  return views_.front();
}

Result<std::shared_ptr<const View>> Engine::State::build(int place_index, By by, std::string_view where,
                                                         std::size_t bands) const {
  const auto where_place = place(place_index);
  if (!where_place) return std::unexpected(where_place.error());
  auto compiled = filter(where, kNever, place_index);
  if (!compiled) return std::unexpected(compiled.error());
  auto fresh = std::make_shared<View>();
  fresh->filter = std::make_unique<Filter>(std::move(*compiled));
  const PoolSet set = pools(**where_place);
  fresh->grouper = bands <= 1 ? std::make_unique<Grouper>(store, set, fresh->filter.get())
                              : std::make_unique<Grouper>(store, set, by, fresh->filter.get(), (*where_place)->peak_at, bands);
  fresh->pyramid = Pyramid::build(store, *fresh->grouper, threads);
  return fresh;
}

Result<std::shared_ptr<const View>> Engine::State::total(int place_index, std::string_view where) const {
  if ((place_index < 0 || place_index == main) && main_view && where.empty()) return main_view;
  return view(place_index, By::category, where, 1);
}

Bytes Engine::State::live_at(const View& v, Moment at) const {
  Bytes sum = 0;
  for (Bytes b : v.pyramid.at(store, *v.grouper, at)) sum += b;
  return sum;
}

namespace {

// Each kind of step is numbered on its own. A number alone means a step of training, or of the first kind if nothing is trained.
std::uint32_t numbered_kind(const Store& store) {
  for (const StepRow& step : store.steps)
    if (store.name(step.kind) == "train") return step.kind;
  return store.steps.empty() ? 0 : store.steps.front().kind;
}

std::unexpected<Error> no_such(std::string_view instant, std::string_view there_is) {
  return fail(fmt::format("there is no \"{}\"; the trace has {}", instant, there_is));
}

// A time since the start, which must lie within the trace. "#2" at the end of the instant: only after the second event of that
// microsecond.
Result<Moment> moment_of_time(const Store& store, double time_us, std::string_view instant) {
  const std::uint64_t end = std::max(store.duration_us(), store.time_of(store.events()));
  if (time_us < 0) return fail(fmt::format("\"{}\" is before the start of the trace", instant));
  if (time_us > static_cast<double>(end))
    return fail(fmt::format("\"{}\" is beyond the end of the trace, which is at {}s", instant, static_cast<double>(end) / 1e6));
  const auto whole_us = static_cast<std::uint64_t>(std::llround(time_us));
  const Moment after_all = store.moment_at(whole_us);
  const std::size_t hash = instant.find('#');
  if (hash == std::string_view::npos) return after_all;
  const auto nth = parse_number(instant.substr(hash + 1));
  const Moment before = whole_us == 0 ? 0 : store.moment_at(whole_us - 1);
  if (!nth || *nth < 1 || *nth > static_cast<double>(after_all - before))
    return fail(fmt::format("there is no \"{}\"; that microsecond has {}", instant,
                            support::format_plural(after_all - before, "event", "events")));
  return before + static_cast<Moment>(*nth);
}

// "oom" or "oom:2"
Result<Moment> resolve_failure(const Store& store, std::string_view instant) {
  const std::size_t wanted = instant == "oom" ? 1 : static_cast<std::size_t>(parse_number(instant.substr(4)).value_or(0));
  std::size_t seen = 0;
  for (const auto& oom : store.ooms)
    if (oom.row.final && ++seen == wanted) return oom.pos;
  return no_such(instant, support::format_plural(seen, "failed request", "failed requests"));
}

// "step:20", which is the peak of the step, or "step:20+6.3ms"
Result<Moment> resolve_step(const Engine::State& state, std::string_view instant, int place) {
  const Store& store = state.store;
  const std::string_view rest = instant.substr(5, instant.find('#') - 5);
  const std::size_t plus = rest.find('+');
  const auto number = parse_number(rest.substr(0, plus));
  const std::uint32_t kind = numbered_kind(store);
  const auto step = std::ranges::find_if(
      store.steps, [&](const StepRow& row) { return number && static_cast<double>(row.number) == *number && row.kind == kind; });
  if (store.steps.empty()) return fail("the trace has no steps; use peak, end, or a time such as 6.2s");
  if (step == store.steps.end()) return no_such(instant, support::format_plural(state.numbered_steps(), "step", "steps"));
  if (plus != std::string_view::npos) {
    const auto after = parse_duration(rest.substr(plus + 1));
    if (!after)
      return fail(fmt::format("invalid instant \"{}\": expected a time after the step, such as step:20+6.3ms", instant));
    return moment_of_time(store, static_cast<double>(step->begin_us) + *after, instant);
  }
  const auto view = state.total(place);
  if (!view) return std::unexpected(view.error());
  return (*view)->pyramid.peak_between(store, *(*view)->grouper, step->begin, step->end).at;
}

}  // namespace

std::int64_t Engine::State::step_number(Moment at) const {
  std::int64_t i = step_index(store, at == 0 ? 0 : at - 1);
  if (i < 0) return 0;
  const StepRow& step = store.steps[static_cast<std::size_t>(i)];
  return step.kind == numbered_kind(store) ? step.number : 0;
}

std::uint64_t Engine::State::failures() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(store.ooms, [](const auto& oom) { return oom.row.final; }));
}

std::uint64_t Engine::State::numbered_steps() const {
  return static_cast<std::uint64_t>(std::ranges::count(store.steps, numbered_kind(store), &StepRow::kind));
}

Result<Moment> Engine::State::resolve(std::string_view instant, int place_index) const {
  const auto found = place(place_index);
  if (!found) return std::unexpected(found.error());
  const Place& where = **found;
  if (instant == "peak" || instant.empty()) return where.peak_at;
  if (instant == "steady") return where.steady ? where.steady_peak_at : where.peak_at;
  if (instant == "end") return store.events();
  if (instant == "start" || instant == "0") return Moment{0};
  if (instant.starts_with("moment:"))
    if (const auto number = parse_number(instant.substr(7)))
      return static_cast<Moment>(std::min(std::max(0.0, *number), static_cast<double>(store.events())));
  if (instant == "oom" || instant.starts_with("oom:")) return resolve_failure(store, instant);
  if (instant.starts_with("step:")) return resolve_step(*this, instant, place_index);
  if (const auto time_us = parse_duration(instant.substr(0, instant.find('#')))) return moment_of_time(store, *time_us, instant);
  return fail(
      fmt::format("invalid instant \"{}\": expected peak, steady, end, step:N, oom, or a time such as 6.2s or 250ms", instant));
}

std::string_view setting_text(const Store& store, std::string_view key) {
  const auto found = std::ranges::lower_bound(store.settings, key, {}, &SettingText::key);
  return found != store.settings.end() && found->key == key ? found->value : std::string_view();
}

std::string setting(const Store& store, std::string_view key) { return std::string(setting_text(store, key)); }

}  // namespace vramscope::analyze
