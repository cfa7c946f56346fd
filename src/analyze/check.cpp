#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analyze/api.h"
#include "analyze/budget.h"
#include "analyze/filter.h"
#include "analyze/state.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

class Checker {
 public:
  Checker(const Engine& engine, const Engine* baseline, std::string_view where, Check& out)
      : engine_(engine), baseline_(baseline), where_(where), out_(out) {}

  Status apply(const BudgetRule& rule) {
    out_.rules += 1;
    if (rule.table == "category" || rule.table == "layer") return at_peak(rule);
    if (rule.table == "baseline") return against_baseline(rule);
    auto place = measured(engine_);
    if (!place) return std::unexpected(place.error());
    if (rule.key == "peak") return bytes(rule, place->peak, "the peak is");
    if (rule.key == "steady_peak")
      return place->steady ? bytes(rule, place->steady_peak, "the steady peak is") : fail(no_steady(rule));
    if (rule.key == "pool") return bytes(rule, place->regions_peak, "the pool holds");
    if (rule.key == "end") return bytes(rule, place->end, "live at the end are");
    if (rule.key == "growth_per_step") return growth(rule);
    if (rule.key == "fragmentation") return fragmentation(rule);
    if (rule.key == "ooms") return count(rule, static_cast<double>(engine_.ooms().events.size()), "failed requests:");
    return fail(
        fmt::format("budget line {}: there is no limit called \"{}\"; known are peak, steady_peak, pool, end, growth_per_step, "
                    "fragmentation, ooms, "
                    "and the tables [category], [layer], [baseline]",
                    rule.line, rule.key));
  }

 private:
  // The main place, with what matching blocks alone reach.
  Result<Place> measured(const Engine& engine) const {
    if (engine.main_place() < 0) return fail("the trace holds no allocation: there is nothing to check");
    Place place = engine.places()[static_cast<std::size_t>(engine.main_place())];
    if (where_.empty()) return place;
    auto view = engine.state().total(-1, where_);
    if (!view) return std::unexpected(view.error());
    const Store& store = engine.state().store;
    const Steady& steady = engine.state().steady;
    const Pyramid& pyramid = (*view)->pyramid;
    place.peak = pyramid.peak_between(store, *(*view)->grouper, 0, store.events()).high;
    place.end = engine.state().live_at(**view, store.events());
    if (steady.has) place.steady_peak = pyramid.peak_between(store, *(*view)->grouper, steady.from, steady.to).high;
    return place;
  }
  static std::string no_steady(const BudgetRule& rule) {
    return fmt::format("budget line {}: the trace has no steady steps; record more steps or limit peak instead", rule.line);
  }

  void judge(const BudgetRule& rule, double value, double limit, const std::string& message) {
    std::string name = rule.table.empty() ? rule.key : fmt::format("{}.{}", rule.table, rule.key);
    if (value > limit)
      out_.violations.push_back({rule.line, name, message, limit, value});
    else
      out_.passed.push_back(fmt::format("{}: {}", name, message));
  }

  Status bytes(const BudgetRule& rule, Bytes value, std::string_view what) {
    auto limit = parse_size(rule.value);
    if (!limit) return fail(fmt::format("budget line {}: \"{}\" is no size; write 512MiB", rule.line, rule.value));
    judge(rule, static_cast<double>(value), *limit,
          fmt::format("{} {}, the limit is {}", what, format_size(value), format_size(static_cast<Bytes>(*limit))));
    return {};
  }

  Status count(const BudgetRule& rule, double value, std::string_view what) {
    auto limit = parse_size(rule.value);
    if (!limit) return fail(fmt::format("budget line {}: \"{}\" is no number", rule.line, rule.value));
    judge(rule, value, *limit, fmt::format("{} {}, the limit is {}", what, value, *limit));
    return {};
  }

  Status growth(const BudgetRule& rule) {
    auto limit = parse_size(rule.value);
    if (!limit) return fail(fmt::format("budget line {}: \"{}\" is no size; write 1KiB", rule.line, rule.value));
    auto leaks = engine_.leaks(-1, where_);
    if (!leaks) return std::unexpected(leaks.error());
    // A budget is a promise: what cannot be told does not keep it.
    if (leaks->verdict == "cannot tell")
      return fail(fmt::format("budget line {}: growth cannot be told: {}", rule.line, leaks->why));
    judge(rule, leaks->bytes_per_step, *limit,
          fmt::format("it grows by {} a step, the limit is {}",
                      format_size(static_cast<Bytes>(std::llround(leaks->bytes_per_step))),
                      format_size(static_cast<Bytes>(*limit))));
    return {};
  }

  Status fragmentation(const BudgetRule& rule) {
    std::string text = rule.value;
    bool percent = text.ends_with('%');
    auto limit = parse_size(percent ? std::string_view(text).substr(0, text.size() - 1) : std::string_view(text));
    if (!limit) return fail(fmt::format("budget line {}: \"{}\" is no share; write 10%", rule.line, rule.value));
    auto frag = engine_.fragmentation();
    if (!frag) return std::unexpected(frag.error());
    double share = frag->worst.pool > 0 ? static_cast<double>(frag->worst.unusable) / static_cast<double>(frag->worst.pool) : 0;
    double most = percent ? *limit / 100 : *limit;
    judge(rule, share, most,
          fmt::format("{:.1f} % of the pool is unusable at worst, the limit is {:.1f} %", share * 100, most * 100));
    return {};
  }

  Status at_peak(const BudgetRule& rule) {
    auto limit = parse_size(rule.value);
    if (!limit) return fail(fmt::format("budget line {}: \"{}\" is no size; write 512MiB", rule.line, rule.value));
    LiveRequest request;
    request.at = "steady";
    request.where = fmt::format("{}:\"{}\"", rule.table, rule.key);
    if (!where_.empty()) request.where += fmt::format(" and ({})", where_);
    auto live = engine_.live(request);
    if (!live) return fail(fmt::format("budget line {}: {}", rule.line, live.error().message));
    judge(rule, static_cast<double>(live->total), *limit,
          fmt::format("{} {} holds {} at the steady peak, the limit is {}", rule.table, rule.key, format_size(live->total),
                      format_size(static_cast<Bytes>(*limit))));
    return {};
  }

  Status against_baseline(const BudgetRule& rule) {
    if (baseline_ == nullptr) return fail(fmt::format("budget line {}: [baseline] needs --baseline TRACE", rule.line));
    auto mine = measured(engine_), theirs = measured(*baseline_);
    if (!mine) return std::unexpected(mine.error());
    if (!theirs) return fail(fmt::format("baseline: {}", theirs.error().message));
    std::string text = rule.value;
    bool percent = text.ends_with('%');
    auto tolerance = parse_size(percent ? std::string_view(text).substr(0, text.size() - 1) : std::string_view(text));
    if (!tolerance) return fail(fmt::format("budget line {}: \"{}\" is no tolerance; write 2% or 8MiB", rule.line, rule.value));
    Bytes now = 0, then = 0;
    if (rule.key == "peak")
      now = mine->peak, then = theirs->peak;
    else if (rule.key == "steady_peak" && mine->steady && theirs->steady)
      now = mine->steady_peak, then = theirs->steady_peak;
    else if (rule.key == "steady_peak")
      return fail(no_steady(rule));
    else if (rule.key == "pool")
      now = mine->regions_peak, then = theirs->regions_peak;
    else
      return fail(fmt::format("budget line {}: [baseline] knows peak, steady_peak and pool", rule.line));
    double most = static_cast<double>(then) + (percent ? static_cast<double>(then) * *tolerance / 100 : *tolerance);
    judge(rule, static_cast<double>(now), most,
          fmt::format("{} is {}, the baseline's is {}, the tolerance {}", rule.key, format_size(now), format_size(then),
                      rule.value));
    return {};
  }

  const Engine& engine_;
  const Engine* baseline_;
  std::string_view where_;
  Check& out_;
};

}  // namespace

Result<Check> check(const Engine& engine, std::string_view budget, const Engine* baseline, std::string_view where) {
  auto rules = parse_budget(budget);
  if (!rules) return std::unexpected(rules.error());
  if (rules->empty()) return fail("the budget file holds no limit; write for example steady_peak = \"300MiB\"");
  Check out;
  Checker checker(engine, baseline, where, out);
  for (const BudgetRule& rule : *rules)
    if (auto ok = checker.apply(rule); !ok) return std::unexpected(ok.error());
  if (out.violations.empty()) {
    out.sentence = fmt::format("{} kept.", support::format_plural(out.rules, "limit is", "limits are"));
  } else {
    out.sentence = fmt::format("{} of {} broken: {}.", out.violations.size(),
                               support::format_plural(out.rules, "limit is", "limits are"), out.violations[0].message);
  }
  return out;
}

}  // namespace vramscope::analyze
