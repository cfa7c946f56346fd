#include "analyze/state.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyze/facts.h"
#include "analyze/filter_text.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

constexpr std::size_t kKeptViews = 16;

}  // namespace

Result<const Place*> Engine::State::place(int index) const {
  if (index < 0) index = main;
  if (index < 0) return fail("the trace holds no allocation");
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
  auto where_place = place(place_index);
  if (!where_place) return std::unexpected(where_place.error());
  bool is_main = place_index < 0 || place_index == main;
  if (is_main && by == By::category && where.empty() && main_view) return main_view;
  std::string key = fmt::format("{}|{}|{}|{}", is_main ? main : place_index, static_cast<int>(by), bands, where);
  {
    std::lock_guard lock(mutex_);
    for (auto it = views_.begin(); it != views_.end(); ++it)
      if (it->first == key) {
        views_.splice(views_.begin(), views_, it);
        return it->second;
      }
  }
  auto fresh = std::make_shared<View>();
  auto compiled = filter(where, kNever, place_index);
  if (!compiled) return std::unexpected(compiled.error());
  fresh->filter = std::make_unique<Filter>(std::move(*compiled));
  PoolSet set = pools(**where_place);
  fresh->grouper = bands <= 1 ? std::make_unique<Grouper>(store, set, fresh->filter.get())
                              : std::make_unique<Grouper>(store, set, by, fresh->filter.get(), (*where_place)->peak_at, bands);
  fresh->pyramid = Pyramid::build(store, *fresh->grouper, threads);
  std::lock_guard lock(mutex_);
  views_.emplace_front(std::move(key), fresh);
  if (views_.size() > kKeptViews) views_.pop_back();
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

// Each kind of step counts on its own. A number alone means a step of training, or of the first kind where nothing is trained.
std::uint32_t numbered_kind(const Store& store) {
  for (const StepRow& step : store.steps)
    if (store.name(step.kind) == "train") return step.kind;
  return store.steps.empty() ? 0 : store.steps.front().kind;
}

}  // namespace

std::int64_t Engine::State::step_number(Moment at) const {
  std::int64_t i = step_index(store, at == 0 ? 0 : at - 1);
  if (i < 0) return 0;
  const StepRow& step = store.steps[static_cast<std::size_t>(i)];
  return step.kind == numbered_kind(store) ? step.number : 0;
}

std::uint64_t Engine::State::numbered_steps() const {
  return static_cast<std::uint64_t>(std::ranges::count(store.steps, numbered_kind(store), &StepRow::kind));
}

Result<Moment> Engine::State::resolve(std::string_view instant, int place_index) const {
  auto where = place(place_index);
  if (!where) return std::unexpected(where.error());
  const Place& p = **where;
  auto number_after = [&](std::string_view prefix) -> std::optional<double> {
    if (!instant.starts_with(prefix)) return std::nullopt;
    return parse_number(instant.substr(prefix.size()));
  };
  // A time since the start, which must lie within the trace.
  auto within = [&](double us) -> Result<Moment> {
    const std::uint64_t end = std::max(store.duration_us(), store.time_of(store.events()));
    if (us < 0) return fail(fmt::format("\"{}\" is before the start of the trace", instant));
    if (us > static_cast<double>(end))
      return fail(fmt::format("\"{}\" is beyond the end of the trace, which is at {}s", instant, static_cast<double>(end) / 1e6));
    return store.moment_at(static_cast<std::uint64_t>(us));
  };
  if (instant == "peak" || instant.empty()) return p.peak_at;
  if (instant == "steady") return p.steady ? p.steady_peak_at : p.peak_at;
  if (instant == "end") return store.events();
  if (instant == "start" || instant == "0") return Moment{0};
  if (auto n = number_after("moment:")) return std::min<Moment>(static_cast<Moment>(std::max(0.0, *n)), store.events());
  if (instant == "oom" || instant.starts_with("oom:")) {
    std::size_t wanted = instant == "oom" ? 1 : static_cast<std::size_t>(number_after("oom:").value_or(0));
    std::size_t seen = 0;
    for (const auto& oom : store.ooms)
      if (oom.row.final && ++seen == wanted) return oom.pos;
    return fail(fmt::format("there is no {}: the trace holds {} failed requests", instant, seen));
  }
  if (instant.starts_with("step:")) {
    std::string_view rest = instant.substr(5);
    std::size_t plus = rest.find('+');
    auto number = parse_number(rest.substr(0, plus));
    const std::uint32_t kind = numbered_kind(store);
    for (std::size_t i = 0; number && i < store.steps.size(); ++i) {
      const StepRow& step = store.steps[i];
      if (static_cast<double>(step.number) != *number || step.kind != kind) continue;
      if (plus != std::string_view::npos) {
        auto after = parse_duration(rest.substr(plus + 1));
        if (!after) return fail(fmt::format("\"{}\" is no time after the step's start; write step:20+6.3ms", instant));
        return within(static_cast<double>(step.begin_us) + *after);
      }
      auto v = total(place_index);
      if (!v) return std::unexpected(v.error());
      return (*v)->pyramid.peak_between(store, *(*v)->grouper, step.begin, step.end).at;
    }
    if (store.steps.empty()) return fail("the trace has no steps; give a time (6.2s) or peak, end");
    return fail(
        fmt::format("there is no {}; the trace has {}", instant, support::format_plural(numbered_steps(), "step", "steps")));
  }
  if (auto us = parse_duration(instant)) return within(*us);
  return fail(fmt::format("\"{}\" is no instant; write peak, steady, end, step:N, a time such as 6.2s or 250ms, oom", instant));
}

std::string setting(const Store& store, std::string_view key) {
  for (std::size_t i = store.settings.size(); i-- > 0;)  // a later value wins
    if (store.text(store.settings[i].row.key) == key) return std::string(store.text(store.settings[i].row.value));
  return {};
}

}  // namespace vramscope::analyze
