// Does it grow, what grows, how fast, since when; or why that cannot be told.
//
// Evidence is identity first: blocks of one origin that are made in step after step and never come back. An origin whose blocks
// do come back, later, must in addition show a trend that its own noise does not explain. Where each step replaces a block by a
// larger one, the sum of its origin must rise. Growth that slows down is no verdict: it may end beyond the trace.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "analyze/facts.h"
#include "analyze/leak_origin.h"
#include "analyze/replaced.h"
#include "analyze/series.h"
#include "analyze/state.h"
#include "analyze/survivors.h"
#include "analyze/told.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

constexpr std::size_t kFewestSteps = 5;   // below it there is nothing to compare
constexpr std::size_t kFewestEvents = 8;  // growths needed before a verdict
constexpr double kSlowing = -2.6;         // standard errors
constexpr double kTrend = 4.0;            // standard errors, for origins whose blocks also come back
constexpr std::size_t kFewestNoisy = 32;  // steps, for the same: what wanders slowly looks like a trend in fewer

std::string rate_text(double bytes) { return format_size(static_cast<std::uint64_t>(std::llround(std::max(0.0, bytes)))); }

}  // namespace

OriginVerdict judge(const Origin& origin, std::size_t steps) {
  OriginVerdict out;
  // Blocks younger than the oldest one that ever came back may still come back.
  std::size_t wait = 1 + (origin.freed_blocks > 0 ? origin.longest_freed : 0);
  if (steps <= wait) return out;
  std::size_t seen = steps - wait;  // window steps whose survivors count
  std::vector<std::size_t> events;
  for (std::size_t s = 0; s < seen; ++s)
    if (origin.kept[s] > 0) events.push_back(s);
  out.events = events.size();
  if (events.empty()) return out;
  out.first = events.front();
  out.state = OriginVerdict::few;
  if (events.size() < 2) return out;
  std::size_t widest = 0;
  for (std::size_t i = 1; i < events.size(); ++i) widest = std::max(widest, events[i] - events[i - 1]);
  std::size_t silent = seen - 1 - events.back();
  // Silence much longer than any pause before it: it has ended.
  if (silent > 3 * widest + 2 && events.size() >= 2) {
    out.state = OriginVerdict::ended;
    return out;
  }
  // From the first growth to the last, without the first: as many gaps as growths.
  std::span<const double> series(origin.kept.data() + events.front() + 1, events.back() - events.front());
  out.rate = mean_interval(series);
  out.rate.low = std::max(0.0, out.rate.low);
  if (events.size() < kFewestEvents) return out;
  std::span<const double> whole(origin.kept.data() + events.front(), seen - events.front());
  // A curve that bends leaves correlated residuals behind a straight line: compare the ends as well.
  auto third = static_cast<std::ptrdiff_t>(whole.size() / 3);
  double early = std::accumulate(whole.begin(), whole.begin() + third, 0.0),
         late = std::accumulate(whole.end() - third, whole.end(), 0.0);
  if (late < 0.5 * early) {
    out.state = late < 0.01 * early ? OriginVerdict::ended : OriginVerdict::slowing;
    return out;
  }
  Trend trend = trend_of(whole);
  if (trend.t < kSlowing && trend.end < 0.9 * trend.start) {
    out.state = OriginVerdict::slowing;
    return out;
  }
  if (origin.freed_blocks > 0) {
    Trend level = trend_of(std::span<const double>(origin.level));
    bool settled = steps >= kFewestNoisy && level.t > kTrend && origin.kept_blocks * 4 > origin.freed_blocks;
    out.state = settled ? OriginVerdict::growing : OriginVerdict::noisy;
    return out;
  }
  out.state = OriginVerdict::growing;
  return out;
}

namespace {

StepWindow window_of(const Engine::State& s) {
  StepWindow out;
  if (!s.steady.has) return out;
  std::uint32_t kind = s.store.steps[s.steady.first].kind;
  for (std::size_t i = s.steady.first; i <= s.steady.last; ++i)
    if (s.store.steps[i].kind == kind) out.steps.push_back(i);
  // A step that ran out of memory or lasts until the program's exit did not end: what it freed on the way out says nothing.
  auto failed = [&](const StepRow& step) {
    return step.open != 0 || std::ranges::any_of(s.store.ooms, [&](const auto& o) {
             return o.row.final && o.pos >= step.begin && o.pos < step.end;
           });
  };
  if (!out.steps.empty() && failed(s.store.steps[out.steps.back()])) out.steps.pop_back();
  return out;
}

LeakRow row_of(const Store& store, const Origin& origin, const OriginVerdict& verdict, const StepWindow& window) {
  LeakRow row;
  Block block = block_of(store, origin.example);
  row.category = block.category;
  row.layer = block.layer;
  row.op = block.op;
  row.line = block.line;
  row.shape = block.shape;
  row.block_bytes = origin.largest;
  row.bytes_per_step = verdict.rate.value;
  row.low = verdict.rate.low;
  row.high = verdict.rate.high;
  row.since_step = store.steps[window.steps[verdict.first]].number;
  row.blocks = origin.kept_blocks;
  row.so_far = origin.kept_bytes;
  row.replaced = origin.replaced;
  row.examples = origin.oldest;
  return row;
}

// `few`: origins that kept something too rarely, at most in `seen` steps each.
void say_why_not(Leaks& out, const StepWindow& window, std::size_t few, std::size_t seen, std::size_t slowing, std::size_t noisy,
                 double kept) {
  std::size_t n = window.steps.size();
  if (slowing > 0) {
    out.verdict = "cannot tell";
    out.saturates = true;
    out.why = fmt::format("memory grows, but slower and slower: it may end after the {} steps recorded; record more steps", n);
  } else if (few > 0 && n < 3 * kFewestEvents) {
    out.verdict = "cannot tell";
    out.why = fmt::format(
        "{} kept, but growth was seen in {} steps and {} are needed to tell it from filling a cache; record more steps",
        rate_text(kept), seen, kFewestEvents);
  } else if (few > 0 && kept > 0) {
    out.verdict = "cannot tell";
    out.why = fmt::format("{} were kept now and then, too rarely in {} steps for a rate; record more steps", rate_text(kept), n);
  } else if (noisy > 0 && n < kFewestNoisy) {
    out.verdict = "cannot tell";
    out.why = fmt::format("what is left after a step wanders, and {} steps are too few to see through it; record more steps", n);
  } else {
    out.verdict = "not growing";
  }
}

// Python knows the list or dictionary that grows.
std::string advice_of(const Leaks& out, const Store& store) {
  const std::string& line = out.rows[0].line;
  if (out.rows[0].replaced)
    return fmt::format(
        "{} makes a larger block in each step in place of the last one: give it a fixed size, or write it out now and then",
        line.empty() ? out.rows[0].op : line);
  auto held = told_facts(store, "held_tensors");
  auto most = std::ranges::max_element(held, {}, [](const ToldFact& f) { return f.number("bytes"); });
  if (most != held.end())
    return fmt::format("{} holds {} tensors, put there at {}: keep a number or a copy on the host, not the tensor",
                       most->text("name"), most->text("count"), most->line());
  return line.empty() ? "find what keeps a reference to these blocks from step to step"
                      : fmt::format("keep a number or a copy on the host at {}, not the tensor", line);
}

std::string sentence_of(const Leaks& out, const Engine::State& s, const StepWindow& window) {
  if (out.verdict == "cannot tell") return fmt::format("It cannot be told whether it leaks: {}.", out.why);
  const Store& store = s.store;
  std::int64_t first = store.steps[window.steps.front()].number, last = store.steps[window.steps.back()].number;
  if (out.verdict == "growing") {
    std::string by = out.rows.empty() ? ""
                     : !out.rows[0].line.empty()
                         ? fmt::format(", {} by {}", out.rows[0].replaced ? "made larger" : "kept", out.rows[0].line)
                     : !out.rows[0].op.empty() ? fmt::format(", made by {}", out.rows[0].op)
                                               : "";
    std::string full = out.steps_to_full ? fmt::format("; the card is full in about {} steps",
                                                       support::format_count(static_cast<std::uint64_t>(*out.steps_to_full)))
                                         : "";
    return fmt::format("Leak: {} a step since step {}, {} so far{}{}.", rate_text(out.bytes_per_step), out.since_step,
                       format_size(out.so_far), by, full);
  }
  auto [low, high] = std::ranges::minmax(out.left_after);
  std::string left = low == high ? fmt::format("{} are left after each of the steps {} to {}, 0 B of growth a step",
                                               format_size(low), first, last)
                                 : fmt::format("between {} and {} are left after the steps {} to {}, without growth",
                                               format_size(low), format_size(high), first, last);
  return fmt::format("No leak: {}.", left);
}

}  // namespace

Result<Leaks> Engine::leaks(int place_index, std::string_view where) const {
  const State& s = *state_;
  const Store& store = s.store;
  auto place = s.place(place_index);
  if (!place) return std::unexpected(place.error());
  auto filter = s.filter(where, kNever, place_index);
  if (!filter) return std::unexpected(filter.error());
  Leaks out;
  StepWindow window = window_of(s);
  std::size_t n = window.steps.size();
  if (const std::uint64_t lost = store.lost_events(); lost > 0) {
    out.verdict = "cannot tell";
    out.why = fmt::format("{} lost, and a block whose free is among them looks like a leak",
                          support::format_plural(lost, "event was", "events were"));
    out.sentence = sentence_of(out, s, window);
    return out;
  }
  if (n < kFewestSteps) {
    out.verdict = "cannot tell";
    out.why = store.steps.empty() ? fmt::format("the trace has no steps ({})", steps(place_index).why)
                                  : fmt::format("{} after warm-up, at least {} are needed",
                                                support::format_plural(n, "step", "steps"), kFewestSteps);
    out.sentence = sentence_of(out, s, window);
    return out;
  }
  Grouper grouper(store, s.pools(**place), &*filter);
  for (std::size_t i : window.steps) out.step_number.push_back(store.steps[i].number);
  bool is_main = place_index < 0 || place_index == s.main;
  std::vector<StepMeasure> measures = s.measures;
  if (!is_main || !where.empty()) {
    auto view = s.total(place_index, where);
    if (!view) return std::unexpected(view.error());
    measures = measure_steps(store, *(*view)->grouper, (*view)->pyramid, s.threads);
  }
  for (std::size_t i : window.steps) out.left_after.push_back(measures[i].after);

  // Origins that each keep a little only once may still add up: what no origin explains is one more origin.
  std::vector<Origin> origins = survivors(store, grouper, window);
  Origin rest;
  rest.kept.assign(n, 0);
  rest.level.assign(n, 0);
  std::size_t few = 0, seen = 0, slowing = 0, noisy = 0;
  double few_bytes = 0;
  std::vector<double> growth(n, 0);
  std::size_t first = n, wait = 1;
  std::vector<std::uint64_t> found;  // keys of the origins that grow
  auto add = [&](const Origin& o, const OriginVerdict& v) -> LeakRow& {
    first = std::min(first, v.first);
    wait = std::max(wait, 1 + (o.freed_blocks > 0 ? o.longest_freed : 0));
    for (std::size_t i = 0; i < n; ++i) growth[i] += o.kept[i];
    out.so_far += o.kept_bytes;
    return out.rows.emplace_back(row_of(store, o, v, window));
  };
  for (const Origin& o : origins) {
    OriginVerdict v = judge(o, n);
    if (v.state == OriginVerdict::growing) {
      add(o, v);
      found.push_back(o.key);
      continue;
    }
    if (v.state == OriginVerdict::slowing) ++slowing;
    if (v.state == OriginVerdict::noisy) ++noisy;
    if (v.state == OriginVerdict::few && o.freed_blocks == 0) {
      if (v.events >= 2) ++few, seen = std::max(seen, v.events);
      if (rest.kept_blocks == 0) rest.example = o.example;
      for (std::size_t i = 0; i < n; ++i) rest.kept[i] += o.kept[i];
      rest.kept_blocks += o.kept_blocks;
      rest.kept_bytes += o.kept_bytes;
      rest.largest = std::max(rest.largest, o.largest);
      few_bytes += static_cast<double>(o.kept_bytes);
      for (std::uint64_t id : o.oldest)
        if (rest.oldest.size() < 5) rest.oldest.push_back(id);
    }
  }
  if (OriginVerdict v = judge(rest, n); v.state == OriginVerdict::growing && rest.kept_blocks > 0) {
    LeakRow& row = add(rest, v);
    row.op = "many origins, each of them rarely";
    row.line.clear();
  }
  for (const Origin& o : replaced(store, grouper, window)) {
    if (std::ranges::find(found, o.key) != found.end()) continue;
    OriginVerdict v = judge(o, n);
    if (v.state == OriginVerdict::slowing) ++slowing;
    if (v.state == OriginVerdict::growing) add(o, v);
  }
  std::ranges::stable_sort(out.rows, [](const LeakRow& a, const LeakRow& b) { return a.bytes_per_step > b.bytes_per_step; });
  if (out.rows.empty()) {
    say_why_not(out, window, few, seen, slowing, noisy, few_bytes);
    out.sentence = sentence_of(out, s, window);
    return out;
  }
  out.verdict = "growing";
  out.since_step = out.step_number[first];
  if (out.rows.size() == 1) {
    out.bytes_per_step = out.rows[0].bytes_per_step;
    out.low = out.rows[0].low;
    out.high = out.rows[0].high;
  } else {
    Interval rate = mean_interval(std::span<const double>(growth.data() + first, n > first + wait ? n - first - wait : 1));
    out.bytes_per_step = rate.value;
    out.low = std::max(0.0, rate.low);
    out.high = rate.high;
  }
  if ((*place)->limit > (*place)->peak && out.bytes_per_step >= 1)
    out.steps_to_full = static_cast<double>((*place)->limit - (*place)->peak) / out.bytes_per_step;
  out.advice = advice_of(out, store);
  out.sentence = sentence_of(out, s, window);
  return out;
}

}  // namespace vramscope::analyze
