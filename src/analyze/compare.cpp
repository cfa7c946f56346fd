// Two or more runs side by side: aligned by layer, op and step, never by address or wall time.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analyze/api.h"
#include "analyze/facts.h"
#include "analyze/state.h"
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
  if (steps.has_steady) {
    out.left_after = steps.steps[steps.steady_last].after;
    out.allocs_per_step = steps.steps[steps.steady_last].allocs;
  }
  return out;
}

bool is_run_specific(const std::string& key) {
  return key.starts_with("process.") || key.find("time") != std::string::npos || key.find("host") != std::string::npos ||
         key.starts_with("fact.") || key.starts_with("gradient_op.") || key.starts_with("variable_") ||
         key.find("path") != std::string::npos;
}

}  // namespace

Result<Compare> compare(std::span<const Engine* const> runs, std::span<const std::string> names, std::string_view where) {
  if (runs.size() < 2) return fail("diff needs two traces or more");
  Compare out;
  Status ok;
  for (std::size_t r = 0; r < runs.size(); ++r)
    out.sides.push_back(side_of(*runs[r], r < names.size() ? names[r] : fmt::format("run {}", r + 1)));
  bool steady = std::ranges::all_of(runs, [](const Engine* e) {
    return e->main_place() >= 0 && e->places()[static_cast<std::size_t>(e->main_place())].steady;
  });
  out.basis = steady ? "each at its own steady peak" : "each at its own peak";
  std::vector<std::string> at(runs.size(), steady ? "steady" : "peak");
  out.categories = rows_by(runs, By::category, at, where, ok);
  if (ok) out.layers = rows_by(runs, By::layer, at, where, ok);
  if (ok) out.ops = rows_by(runs, By::op, at, where, ok);
  if (ok) out.dtypes = rows_by(runs, By::dtype, at, where, ok);
  if (!ok) return std::unexpected(ok.error());
  // The same place: all at the step (and share of it) at which the first one peaks.
  if (steady) {
    const Engine& first = *runs.front();
    Steps steps = first.steps();
    Moment peak = first.resolve("steady").value_or(0);
    for (const Step& step : steps.steps) {
      if (peak < step.begin || peak > step.end) continue;
      std::vector<std::string> same;
      double share =
          step.end > step.begin ? static_cast<double>(peak - step.begin) / static_cast<double>(step.end - step.begin) : 0;
      for (const Engine* run : runs) {
        Steps theirs = run->steps();
        const Step& last = theirs.steps[theirs.steady_last];
        auto it =
            std::ranges::find_if(theirs.steps, [&](const Step& s) { return s.number == step.number && s.kind == step.kind; });
        const Step& s = it == theirs.steps.end() ? last : *it;
        same.push_back(fmt::format("moment:{}", s.begin + static_cast<Moment>(share * static_cast<double>(s.end - s.begin))));
      }
      same.front() = fmt::format("moment:{}", peak);
      out.same_place = rows_by(runs, By::category, same, where, ok);
      out.same_place_at = std::move(same);
      break;
    }
  }
  std::map<std::string, std::vector<std::string>> settings;
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (const auto& [key, value] : runs[r]->overview().settings) {
      auto& row = settings[key];
      row.resize(runs.size());
      row[r] = value;
    }
  for (auto& [key, values] : settings) {
    values.resize(runs.size());
    if (!is_run_specific(key) && std::set<std::string>(values.begin(), values.end()).size() > 1)
      out.settings.emplace_back(key, values);
  }

  const CompareSide &a = out.sides.front(), &b = out.sides.back();
  if (!where.empty()) {
    std::int64_t more = 0;
    for (const CompareRow& row : out.categories) more += row.change;
    out.sentence = more == 0
                       ? fmt::format("{} and {} hold the same of what matches '{}'.", a.name, b.name, where)
                       : fmt::format("{} holds {} {} than {} of what matches '{}'.", b.name,
                                     format_size(static_cast<Bytes>(std::abs(more))), more > 0 ? "more" : "less", a.name, where);
    return out;
  }
  const auto need = [&](const CompareSide& side) { return steady ? side.steady_peak.value_or(side.peak) : side.peak; };
  auto change = static_cast<std::int64_t>(need(b)) - static_cast<std::int64_t>(need(a));
  if (change == 0) {
    out.sentence = fmt::format("{} and {} need the same: {}.", a.name, b.name, format_size(need(a)));
    return out;
  }
  auto same_sign = [&](const CompareRow& row) { return (row.change > 0) == (change > 0) && row.change != 0; };
  std::string through;
  if (!out.categories.empty() && same_sign(out.categories[0])) {
    through = fmt::format(": {} {}", format_size(static_cast<Bytes>(std::abs(out.categories[0].change))), out.categories[0].key);
    if (auto it = std::ranges::find_if(out.layers, [&](const CompareRow& r) { return same_sign(r) && !r.key.empty(); });
        it != out.layers.end())
      through += fmt::format(", most in {}", layer_in_words(it->key));
  }
  out.sentence = fmt::format("{} needs {} {} than {}{}.", b.name, format_size(static_cast<Bytes>(std::abs(change))),
                             change > 0 ? "more" : "less", a.name, through);
  return out;
}

}  // namespace vramscope::analyze
