#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analyze/api.h"
#include "analyze/query/filter.h"
#include "analyze/query/filter_text.h"
#include "analyze/query/state.h"
#include "analyze/verdict/budget.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

constexpr const char* kNothing = "the trace has no allocations: there is nothing to check";

class Checker {
 public:
  Checker(const Engine& engine, const Engine* baseline, std::string_view where, Check& out)
      : engine_(engine), baseline_(baseline), where_(where), out_(out) {}

  Status apply(const BudgetRule& rule) {
    out_.rules += 1;
    auto place = measured(engine_);
    if (!place) return std::unexpected(place.error());
    if (rule.table == "category" || rule.table == "layer") return at_peak(rule, *place);
    if (rule.table == "baseline") return against_baseline(rule);
    if (rule.key == "peak") return bytes(rule, place->peak, "the peak is");
    if (rule.key == "steady_peak")
      return place->steady ? bytes(rule, place->steady_peak, "the steady peak is") : fail(no_steady(rule));
    if (rule.key == "pool") return pool(rule, place->regions_peak);
    if (rule.key == "end") return bytes(rule, place->end, "at the end, live memory is");
    if (rule.key == "growth_per_step") return growth(rule);
    if (rule.key == "fragmentation") return fragmentation(rule);
    if (rule.key == "ooms") return count(rule, static_cast<double>(engine_.ooms().events.size()), "failed requests:");
    return fail(
        fmt::format("budget line {}: there is no limit called \"{}\"; expected peak, steady_peak, pool, end, growth_per_step, "
                    "fragmentation, ooms, "
                    "and the tables [category], [layer], [baseline]",
                    rule.line, rule.key));
  }

 private:
  // The main place, with what matching blocks alone reach.
  Result<Place> measured(const Engine& engine) const {
    if (engine.main_place() < 0) return fail(kNothing);
    Place place = engine.places()[static_cast<std::size_t>(engine.main_place())];
    if (place.allocs == 0) return fail(kNothing);
    if (where_.empty()) return place;
    auto view = engine.state().total(-1, where_);
    if (!view) return std::unexpected(view.error());
    const Store& store = engine.state().store;
    const Steady& steady = engine.state().steady;
    const Pyramid& pyramid = (*view)->pyramid;
    place.peak = pyramid.peak_between(store, *(*view)->grouper, 0, store.events()).high;
    place.end = engine.state().live_at(**view, store.events());
    if (steady.has) place.steady_peak = 0;
    for (const Stretch& part : steady.training)
      place.steady_peak = std::max(place.steady_peak, pyramid.peak_between(store, *(*view)->grouper, part.from, part.to).high);
    return place;
  }
  // "; there are a, b, c"
  std::string layers_there_are() const {
    constexpr std::size_t kNamed = 8;
    std::vector<std::string> names;
    if (auto layers = engine_.layers("steady"))
      for (const LayerRow& row : layers->rows)
        if (!row.name.empty() && names.size() < kNamed) names.push_back(row.name);
    return names.empty() ? "" : fmt::format("; there are {}{}", fmt::join(names, ", "), names.size() == kNamed ? ", ..." : "");
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

  static std::unexpected<Error> wrong(const BudgetRule& rule, std::string_view what) {
    return fail(fmt::format("budget line {}: {}: {}", rule.line, rule.key, what));
  }
  static Result<double> size(const BudgetRule& rule) {
    auto limit = support::parse_size(rule.value);
    if (!limit) return wrong(rule, limit.error().message);
    return static_cast<double>(*limit);
  }
  static Result<double> number(const BudgetRule& rule, std::string_view text, std::string_view example) {
    auto value = parse_number(text);
    if (!value || *value < 0)
      return wrong(rule, fmt::format("\"{}\" must be a non-negative number, such as {}", rule.value, example));
    return *value;
  }

  Status bytes(const BudgetRule& rule, Bytes value, std::string_view what) {
    auto limit = size(rule);
    if (!limit) return std::unexpected(limit.error());
    judge(rule, static_cast<double>(value), *limit,
          fmt::format("{} {}, the limit is {}", what, format_size(value), format_size(static_cast<Bytes>(*limit))));
    return {};
  }

  Status pool(const BudgetRule& rule, Bytes value) {
    if (value == 0) return wrong(rule, "no pool region was recorded; limit peak instead");
    return bytes(rule, value, "the pool holds");
  }

  Status count(const BudgetRule& rule, double value, std::string_view what) {
    auto limit = number(rule, rule.value, "0");
    if (!limit) return std::unexpected(limit.error());
    judge(rule, value, *limit, fmt::format("{} {}, the limit is {}", what, value, *limit));
    return {};
  }

  Status growth(const BudgetRule& rule) {
    auto limit = size(rule);
    if (!limit) return std::unexpected(limit.error());
    auto leaks = engine_.leaks(-1, where_);
    if (!leaks) return std::unexpected(leaks.error());
    // A budget is a promise: a limit that cannot be checked is not met.
    if (leaks->verdict == "cannot tell") return fail(fmt::format("budget line {}: growth is unknown: {}", rule.line, leaks->why));
    judge(rule, leaks->bytes_per_step, *limit,
          fmt::format("it grows by {} per step, the limit is {}",
                      format_size(static_cast<Bytes>(std::llround(leaks->bytes_per_step))),
                      format_size(static_cast<Bytes>(*limit))));
    return {};
  }

  Status fragmentation(const BudgetRule& rule) {
    std::string text = rule.value;
    bool percent = text.ends_with('%');
    auto limit = number(rule, percent ? std::string_view(text).substr(0, text.size() - 1) : std::string_view(text), "10%");
    if (!limit) return std::unexpected(limit.error());
    auto frag = engine_.fragmentation();
    if (!frag) return std::unexpected(frag.error());
    if (frag->worst.pool == 0) return wrong(rule, "no pool region was recorded, so it is unknown");
    double share = static_cast<double>(frag->worst.unusable) / static_cast<double>(frag->worst.pool);
    double most = percent ? *limit / 100 : *limit;
    judge(rule, share, most,
          fmt::format("{} of the pool is unusable at worst, the limit is {}", support::format_percent(share),
                      support::format_percent(most)));
    return {};
  }

  Status at_peak(const BudgetRule& rule, const Place& place) {
    auto limit = size(rule);
    if (!limit) return std::unexpected(limit.error());
    if (!place.steady) return fail(no_steady(rule));
    if (rule.key.find('"') != std::string::npos) return wrong(rule, "a name with a quotation mark cannot be limited");
    LiveRequest request;
    request.at = "steady";
    request.where = fmt::format("{}:\"{}\"", rule.table, rule.key);
    // A category that this program does not use meets its limit; an unknown layer is a typo.
    if (rule.table == "layer" && !engine_.check_matches(request.where))
      return wrong(rule, fmt::format("the trace has no layer with this name{}", layers_there_are()));
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
    auto tolerance = percent ? number(rule, std::string_view(text).substr(0, text.size() - 1), "2% or 8MiB") : size(rule);
    if (!tolerance) return std::unexpected(tolerance.error());
    Bytes now = 0, then = 0;
    if (rule.key == "peak") {
      now = mine->peak;
      then = theirs->peak;
    } else if (rule.key == "steady_peak") {
      if (!mine->steady || !theirs->steady) return fail(no_steady(rule));
      now = mine->steady_peak;
      then = theirs->steady_peak;
    } else if (rule.key == "pool") {
      if (mine->regions_peak == 0 || theirs->regions_peak == 0)
        return wrong(rule, "no pool region was recorded; compare peak instead");
      now = mine->regions_peak;
      then = theirs->regions_peak;
    } else {
      return fail(fmt::format("budget line {}: [baseline] takes peak, steady_peak and pool", rule.line));
    }
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
  if (rules->empty()) return fail("the budget file has no limits; for example: steady_peak = \"300MiB\"");
  if (auto ok = engine.check_matches(where); !ok) return std::unexpected(ok.error());
  if (baseline != nullptr)
    if (auto ok = baseline->check_matches(where); !ok) return fail(fmt::format("baseline: {}", ok.error().message));
  Check out;
  Checker checker(engine, baseline, where, out);
  for (const BudgetRule& rule : *rules)
    if (auto ok = checker.apply(rule); !ok) return std::unexpected(ok.error());
  if (out.violations.empty()) {
    out.sentence = fmt::format("{} met.", support::format_plural(out.rules, "limit is", "limits are"));
  } else {
    out.sentence = fmt::format("{} of {} exceeded: {}.", out.violations.size(),
                               support::format_plural(out.rules, "limit is", "limits are"), out.violations[0].message);
  }
  return out;
}

}  // namespace vramscope::analyze
