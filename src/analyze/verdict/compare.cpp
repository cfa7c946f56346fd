// Two or more runs side by side: aligned by layer, op and step, never by address or wall time.
#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "analyze/api.h"
#include "analyze/query/block_text.h"
#include "analyze/query/state.h"
#include "analyze/steps/pace.h"
#include "analyze/steps/usual.h"
#include "analyze/verdict/differences.h"
#include "support/units.h"

namespace vramscope::analyze {
namespace {

using support::format_size;

// Live bytes of each run at its instant, matched by name.
std::vector<CompareRow> rows_by(std::span<const Engine* const> runs, By by, const std::vector<std::string>& at,
                                std::string_view where, Status& status) {
  std::map<std::string, std::vector<std::optional<Bytes>>> sums;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    LiveRequest request;
    request.at = at[r];
    request.by = {by};
    request.where = where;
    request.limit = 0;
    auto live = runs[r]->live(request);
    if (!live) {
      status = std::unexpected(live.error());
      return {};
    }
    for (const Group& g : live->groups) {
      auto& row = sums[g.keys[0]];
      row.resize(runs.size());
      row[r] = row[r].value_or(0) + g.bytes;
    }
  }
  std::vector<CompareRow> out;
  for (auto& [key, bytes] : sums) {
    CompareRow row{key, bytes, 0};
    row.change = static_cast<std::int64_t>(bytes.back().value_or(0)) - static_cast<std::int64_t>(bytes.front().value_or(0));
    out.push_back(std::move(row));
  }
  std::ranges::stable_sort(out, [](const CompareRow& a, const CompareRow& b) {
    return std::abs(a.change) != std::abs(b.change) ? std::abs(a.change) > std::abs(b.change)
                                                    : a.bytes.front().value_or(0) > b.bytes.front().value_or(0);
  });
  return out;
}

CompareSide side_of(const Engine& engine, const std::string& name) {
  CompareSide out;
  out.name = name;
  if (engine.main_place() < 0) return out;
  const Place& place = engine.places()[static_cast<std::size_t>(engine.main_place())];
  out.peak = place.peak;
  if (place.steady) out.steady_peak = place.steady_peak;
  if (place.regions_peak > 0) out.regions = place.regions_peak;
  Steps steps = engine.steps();
  out.steps = engine.state().numbered_steps();
  out.step_us = steps.step_us;
  out.interval_us = steps.interval_us;
  out.samples = usual_samples(steps);
  out.samples_per_s = steps.samples_per_s;
  if (steps.has_steady) {
    out.left_after = steps.steps[steps.steady_last].after;
    out.allocs_per_step = steps.steps[steps.steady_last].allocs;
  }
  return out;
}

bool has_steady_peak(const Engine* engine) {
  return engine->main_place() >= 0 && engine->places()[static_cast<std::size_t>(engine->main_place())].steady;
}

std::int64_t change_of(const std::vector<CompareRow>& rows) {
  std::int64_t sum = 0;
  for (const CompareRow& row : rows) sum += row.change;
  return sum;
}

std::string size_of(std::int64_t change) { return format_size(static_cast<Bytes>(std::abs(change))); }
const char* more_or_less(std::int64_t change) { return change > 0 ? "more" : "less"; }

// The same place: all at the step, and the share of it, at which the first one peaks. None where it peaks in no step.
std::vector<std::string> same_place(std::span<const Engine* const> runs) {
  const Engine& first = *runs.front();
  const Steps steps = first.steps();
  const Moment peak = first.resolve("steady").value_or(0);
  const auto step = std::ranges::find_if(steps.steps, [&](const Step& s) { return peak >= s.begin && peak <= s.end; });
  if (step == steps.steps.end()) return {};
  const double share =
      step->end > step->begin ? static_cast<double>(peak - step->begin) / static_cast<double>(step->end - step->begin) : 0;
  std::vector<std::string> out;
  for (const Engine* run : runs) {
    const Steps theirs = run->steps();
    const auto same =
        std::ranges::find_if(theirs.steps, [&](const Step& s) { return s.number == step->number && s.kind == step->kind; });
    const Step& s = same == theirs.steps.end() ? theirs.steps[theirs.steady_last] : *same;
    out.push_back(fmt::format("moment:{}", s.begin + static_cast<Moment>(share * static_cast<double>(s.end - s.begin))));
  }
  out.front() = fmt::format("moment:{}", peak);
  return out;
}

support::SizeUnit unit_of(std::int64_t change) { return support::unit_for(static_cast<Bytes>(std::abs(change))); }
std::string in_unit(std::int64_t change, const support::SizeUnit& unit) {
  if (unit.bytes == 1) return signed_size(change);
  const auto bytes = static_cast<Bytes>(std::abs(change));
  return fmt::format("{}{} {}", change < 0 ? "−" : "+", support::format_in(bytes, unit.bytes), unit.name);
}

// The largest parts of a change, and what is left as one more part: together they are the change. All in one unit, so that
// people can add them up.
std::string reasons(std::vector<CompareRow> parts, std::int64_t change, const support::SizeUnit& unit) {
  constexpr std::size_t kMost = 3;
  constexpr std::int64_t kReason = 20, kTiny = 100;  // parts of the change that are no reason, and that nobody misses
  std::ranges::stable_sort(parts, std::ranges::greater{}, [](const CompareRow& part) { return std::abs(part.change); });
  if (parts.size() > kMost) parts.resize(kMost);
  std::string out;
  std::int64_t left = change;
  for (const CompareRow& part : parts) {
    if (part.change == 0 || std::abs(part.change) * kReason < std::abs(change)) break;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", part.key, in_unit(part.change, unit));
    left -= part.change;
  }
  if (!out.empty() && left != 0 && std::abs(left) * kTiny >= std::abs(change)) out += ", all other " + in_unit(left, unit);
  return out;
}

std::string same_place_sentence(const Compare& c) {
  const CompareSide &a = c.sides.front(), &b = c.sides.back();
  const std::int64_t change = change_of(c.same_place);
  return change == 0 ? fmt::format("At the same point in the step, {} and {} hold the same amount.", a.name, b.name)
                     : fmt::format("At the same point in the step, {} holds {} {} than {}.", b.name, size_of(change),
                                   more_or_less(change), a.name);
}

std::string peak_sentence(const Compare& c) {
  const CompareSide &a = c.sides.front(), &b = c.sides.back();
  const std::int64_t change = change_of(c.at_peak);
  if (change == 0) return fmt::format("{} and {} have the same peak.", a.name, b.name);
  return fmt::format("The peak of {} is {} {} than that of {}: {}.", b.name, size_of(change), change < 0 ? "lower" : "higher",
                     a.name, reasons(c.at_peak, change, unit_of(change)));
}

// Of blocks that match a filter.
std::string matching_sentence(const Compare& c, std::string_view where) {
  const CompareSide &a = c.sides.front(), &b = c.sides.back();
  const std::int64_t change = change_of(c.categories);
  return change == 0 ? fmt::format("{} and {} hold the same amount of what matches \"{}\".", a.name, b.name, where)
                     : fmt::format("{} holds {} {} than {} of what matches \"{}\".", b.name, size_of(change),
                                   more_or_less(change), a.name, where);
}

// Fewer bytes may cost speed: the first run against the last.
std::string pace_sentence(const Compare& c) {
  const CompareSide &a = c.sides.front(), &b = c.sides.back();
  const std::string before = pace_in_words(a.interval_us, a.samples_per_s), after = pace_in_words(b.interval_us, b.samples_per_s);
  if (before.empty() || after.empty()) return {};
  return fmt::format("Steady steps: {} in {}; {} in {}.", before, a.name, after, b.name);
}

std::string sentence_of(const Compare& c) {
  const CompareSide &a = c.sides.front(), &b = c.sides.back();
  const auto need = [&](const CompareSide& side) { return c.steady ? side.steady_peak.value_or(side.peak) : side.peak; };
  const auto change = static_cast<std::int64_t>(need(b)) - static_cast<std::int64_t>(need(a));
  if (change == 0) return fmt::format("{} and {} need the same: {}.", a.name, b.name, format_size(need(a)));
  std::string out = fmt::format("{} needs {} {} than {}", b.name, size_of(change), more_or_less(change), a.name);
  if (const std::string why = reasons(c.categories, change, unit_of(change)); !why.empty()) out += ": " + why;
  const auto layer = std::ranges::find_if(c.layers, [](const CompareRow& row) { return !row.key.empty(); });
  if (layer == c.layers.end() || layer->change == 0) return out + ".";
  return fmt::format("{}. By layer, most changed in {}: {}.", out, layer_in_words(layer->key),
                     in_unit(layer->change, unit_of(change)));
}

}  // namespace

std::string signed_size(std::int64_t change) { return (change < 0 ? "−" : "+") + size_of(change); }

std::string why_changed(const CompareRow& row, std::vector<CompareRow> parts) {
  if (row.change == 0) return {};
  if (row.bytes.back().value_or(0) == 0) return "not live in B at that point";
  if (row.bytes.front().value_or(0) == 0) return "not live in A at that point";
  const Bytes largest = std::max(row.bytes.front().value_or(0), row.bytes.back().value_or(0));
  return reasons(std::move(parts), row.change, support::unit_for(largest));
}

Result<Compare> compare(std::span<const Engine* const> runs, std::span<const std::string> names, std::string_view where) {
  if (runs.size() < 2) return fail("diff needs at least two traces");
  Compare out;
  Status ok;
  for (std::size_t r = 0; r < runs.size(); ++r)
    out.sides.push_back(side_of(*runs[r], r < names.size() ? names[r] : fmt::format("run {}", r + 1)));
  const bool steady = out.steady = std::ranges::all_of(runs, has_steady_peak);
  out.basis = steady ? "each at its own steady peak" : "each at its own peak";
  const std::vector<std::string> at(runs.size(), steady ? "steady" : "peak");
  out.categories = rows_by(runs, By::category, at, where, ok);
  if (ok) out.layers = rows_by(runs, By::layer, at, where, ok);
  if (ok) out.ops = rows_by(runs, By::op, at, where, ok);
  if (ok) out.dtypes = rows_by(runs, By::dtype, at, where, ok);
  if (ok) out.at_peak = rows_by(runs, By::category, std::vector<std::string>(runs.size(), "peak"), where, ok);
  if (steady) out.same_place_at = same_place(runs);
  if (ok && !out.same_place_at.empty()) out.same_place = rows_by(runs, By::category, out.same_place_at, where, ok);
  if (!ok) return std::unexpected(ok.error());
  out.settings = differences(runs, out.sides);
  out.at_peak_sentence = peak_sentence(out);
  out.pace_sentence = pace_sentence(out);
  if (!out.same_place_at.empty()) out.same_place_sentence = same_place_sentence(out);
  out.sentence = where.empty() ? sentence_of(out) : matching_sentence(out, where);
  return out;
}

}  // namespace vramscope::analyze
