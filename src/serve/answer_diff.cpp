// Two runs beside each other.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ranges>

#include "serve/engine_service.h"
#include "serve/words.h"

namespace vramscope::serve {

namespace {

constexpr std::size_t kMostRows = 200;

double value_of(const std::vector<std::optional<analyze::Bytes>>& bytes, std::size_t i) {
  return i < bytes.size() && bytes[i] ? static_cast<double>(*bytes[i]) : 0;
}

// The step whose peak is compared: the one the steady peak lies in, else the highest.
const analyze::Step* shown_step(const analyze::Engine& engine, const analyze::Steps& steps, std::string_view at) {
  const analyze::Place* place = main_place(engine);
  if (place == nullptr || steps.steps.empty()) return nullptr;
  return step_at(steps, engine.time_of(at == "steady" && place->steady ? place->steady_peak_at : place->peak_at));
}

DiffSide side_of(const Opened& trace, const std::string& name, std::string_view at) {
  const analyze::Engine& engine = trace.engine();
  const analyze::Steps& steps = trace.steps();
  const analyze::Step* step = shown_step(engine, steps, at);
  const std::uint64_t end = trace.overview().duration_us + 1;
  const std::uint64_t t0 = step != nullptr ? step->begin_us : 0;
  const std::uint64_t t1 = std::max(t0 + 1, step != nullptr ? step->end_us : end);
  DiffSide out;
  out.name = name;
  out.text = fmt::format("{}, {}", name,
                         step != nullptr ? fmt::format("step {}, {}", step->number, seconds_text(t1 - t0)) : "whole run");
  const auto stacked = engine.stacked({.t0_us = t0, .t1_us = t1, .width = kTileColumns, .where = {}});
  if (!stacked) return out;
  out.stack.t0 = static_cast<double>(t0);
  out.stack.t1 = static_cast<double>(t1);
  out.stack.exact = stacked->exact_borders;
  for (std::size_t g = 0; g < stacked->groups.size(); ++g) {
    const auto& values = stacked->peak[g];
    out.stack.groups.push_back({stacked->groups[g], stacked->groups[g],
                                values.empty() ? 0 : static_cast<double>(*std::max_element(values.begin(), values.end())),
                                false});
    out.stack.bytes.insert(out.stack.bytes.end(), values.begin(), values.end());
  }
  out.stack.t = column(stacked->border_us);
  out.stack.moment = column(stacked->at);
  out.stack.peak_t = column(stacked->time_us);
  out.stack.low = column(stacked->low);
  out.stack.density = column(stacked->events);
  const auto most = std::max_element(stacked->high.begin(), stacked->high.end());
  if (most != stacked->high.end()) {
    out.peak = static_cast<double>(*most);
    out.peak_t = static_cast<double>(stacked->time_us[static_cast<std::size_t>(most - stacked->high.begin())]);
    out.stack.top = out.peak;
    out.peak_text = size_text(*most);
  }
  for (const analyze::Mark& mark : engine.marks(t0, t1, "phase"))
    if (mark.end_us > mark.begin_us && mark.begin_us >= t0 && mark.end_us <= t1)
      out.phases.push_back(
          {"phase", mark.name, mark.number, static_cast<double>(mark.begin_us), static_cast<double>(mark.end_us), 0});
  return out;
}

DiffFigure figure(std::string name, std::string unit, std::optional<double> a, std::optional<double> b) {
  DiffFigure out{.name = std::move(name), .unit = std::move(unit), .a = a, .b = b};
  if (a && b) out.change = *b - *a;
  return out;
}

std::optional<double> median_step(const analyze::Steps& steps) {
  std::vector<double> lengths;
  for (std::size_t i = steps.has_steady ? steps.steady_first : 0;
       i < steps.steps.size() && (!steps.has_steady || i <= steps.steady_last); ++i)
    lengths.push_back(static_cast<double>(steps.steps[i].end_us - steps.steps[i].begin_us));
  if (lengths.empty()) return std::nullopt;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

// Bytes of each group, split by category, at the instant that is compared.
using Split = std::map<std::string, std::map<std::string, double>>;
Split split_by(const analyze::Engine& engine, analyze::By by, const std::string& at) {
  Split out;
  const auto live = engine.live({.at = at, .by = {by, analyze::By::category}, .where = {}, .limit = 0});
  if (!live) return out;
  for (const analyze::Group& group : live->groups) out[group.keys[0]][group.keys[1]] += static_cast<double>(group.bytes);
  return out;
}

std::string change_text(double change) {
  return fmt::format("{}{}", change < 0 ? "−" : "+", size_text(static_cast<analyze::Bytes>(std::abs(change))));
}

// "gradients +1.0 MiB, activations −0.3 MiB": what the change of a row consists of.
std::string why_of(const DiffRow& row) {
  if (row.change == 0) return {};
  if (row.b == 0) return "nothing of it is live in B then";
  if (row.a == 0) return "nothing of it is live in A then";
  std::vector<DiffPart> parts = row.parts;
  const auto change = [](const DiffPart& part) { return part.b - part.a; };
  std::ranges::sort(parts, [&](const DiffPart& x, const DiffPart& y) { return std::abs(change(x)) > std::abs(change(y)); });
  std::string out;
  for (const DiffPart& part : parts | std::views::take(2))
    if (std::abs(change(part)) * 20 >= std::abs(row.change))  // less is not the reason
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", part.category, change_text(change(part)));
  return out;
}

std::string same_place_sentence(const analyze::Compare& compared, const std::array<std::string, 2>& names) {
  std::int64_t change = 0;
  for (const analyze::CompareRow& row : compared.same_place) change += row.change;
  return change == 0
             ? fmt::format("At the same place {} and {} hold the same.", names[0], names[1])
             : fmt::format("At the same place {} holds {} {} than {}.", names[1],
                           size_text(static_cast<analyze::Bytes>(std::abs(change))), change < 0 ? "less" : "more", names[0]);
}

// What the analysis compares is each run's steady peak. For the peaks themselves the same is said here.
void compare_peaks(const std::array<const analyze::Engine*, 2>& runs, const std::array<std::string, 2>& names, Diff& out) {
  const std::array<Split, 2> split = {split_by(*runs[0], analyze::By::category, "peak"),
                                      split_by(*runs[1], analyze::By::category, "peak")};
  const auto bytes = [&](std::size_t run, const std::string& name) {
    const auto found = split[run].find(name);
    return found == split[run].end() ? 0 : found->second.begin()->second;
  };
  for (const std::string_view category : analyze::category_names()) {
    const std::string name(category);
    if (bytes(0, name) == 0 && bytes(1, name) == 0) continue;
    out.categories.push_back(figure(name, "bytes", bytes(0, name), bytes(1, name)));
    out.categories.back().category = name;
  }
  std::ranges::sort(out.categories,
                    [](const DiffFigure& x, const DiffFigure& y) { return std::abs(*x.change) > std::abs(*y.change); });
  double change = 0;
  for (const DiffFigure& f : out.categories) change += *f.change;
  out.note = "Compared each at its own peak.";
  if (change == 0) {
    out.sentence = fmt::format("{} and {} have the same peak.", names[0], names[1]);
    return;
  }
  out.sentence = fmt::format("The peak of {} is {} {} than that of {}: {} {}.", names[1],
                             size_text(static_cast<analyze::Bytes>(std::abs(change))), change < 0 ? "lower" : "higher", names[0],
                             out.categories[0].name, change_text(*out.categories[0].change));
}

}  // namespace

Result<Diff> EngineService::diff(const DiffParams& params) {
  const auto first = library_->trace(params.a);
  if (!first) return std::unexpected(first.error());
  const auto second = library_->trace(params.b);
  if (!second) return std::unexpected(second.error());
  const auto by = analyze::by_from(params.by.empty() ? "layer" : params.by);
  if (!by) return std::unexpected(by.error());
  const std::array<const analyze::Engine*, 2> runs = {&(*first)->engine(), &(*second)->engine()};
  const std::array<std::string, 2> names = {library_->name(params.a), library_->name(params.b)};
  const auto compared = analyze::compare(runs, names);
  if (!compared) return std::unexpected(compared.error());
  Diff out;
  out.sentence = compared->sentence;
  out.note = fmt::format("Compared {}.", compared->basis);
  for (const auto& [key, values] :
       compared->settings)  // what only one of them has says more about the recording than about the run
    if (values.size() == 2 && !values[0].empty() && !values[1].empty() && out.note.size() < 300)
      out.note += fmt::format(" {}: {} and {}.", key, values[0], values[1]);
  out.a = side_of(**first, names[0], params.at);
  out.b = side_of(**second, names[1], params.at);
  if (compared->sides.size() == 2) {
    const analyze::CompareSide& a = compared->sides[0];
    const analyze::CompareSide& b = compared->sides[1];
    const auto bytes = [&](std::string name, std::optional<analyze::Bytes> x, std::optional<analyze::Bytes> y) {
      out.figures.push_back(figure(std::move(name), "bytes", x, y));
    };
    bytes("Steady peak", a.steady_peak, b.steady_peak);
    bytes("Peak", a.peak, b.peak);
    bytes("Left after a step", a.left_after, b.left_after);
    bytes("Pool", a.regions, b.regions);
    out.figures.push_back(figure("Step time, median", "us", median_step((*first)->steps()), median_step((*second)->steps())));
    out.figures.push_back(figure("Allocations a step", "count", a.allocs_per_step, b.allocs_per_step));
  }
  const bool same_place = params.at == "same" && compared->same_place_at.size() == 2;
  if (same_place)
    out.sentence = same_place_sentence(*compared, names),
    out.note = "Compared at the step, and the share of it, of the first run's steady peak.";
  if (params.at == "peak")
    compare_peaks(runs, names, out);
  else
    for (const analyze::CompareRow& row : same_place ? compared->same_place : compared->categories) {
      out.categories.push_back(figure(row.key, "bytes", value_of(row.bytes, 0), value_of(row.bytes, 1)));
      out.categories.back().category = row.key;
    }
  for (const DiffFigure& f : out.categories) out.total.a += *f.a, out.total.b += *f.b;
  out.total.name = "All";
  out.total.change = out.total.b - out.total.a;
  // The rows are taken at the instants of the categories, so that both have the same sum.
  const std::string own = params.at == "peak" || compared->basis == "each at its own peak" ? "peak" : "steady";
  const Split a = split_by(*runs[0], *by, same_place ? compared->same_place_at[0] : own);
  const Split b = split_by(*runs[1], *by, same_place ? compared->same_place_at[1] : own);
  std::map<std::string, DiffRow> rows;
  for (const bool is_b : {false, true})
    for (const auto& [key, parts] : is_b ? b : a) {
      DiffRow& row = rows[key];
      row.name = key;
      for (const auto& [category, size] : parts) {
        auto part = std::find_if(row.parts.begin(), row.parts.end(), [&](const DiffPart& p) { return p.category == category; });
        if (part == row.parts.end()) part = row.parts.insert(row.parts.end(), {.category = category});
        (is_b ? part->b : part->a) += size;
        (is_b ? row.b : row.a) += size;
      }
    }
  for (auto& [key, row] : rows) {
    row.change = row.b - row.a;
    row.why = why_of(row);
    out.rows.push_back(std::move(row));
  }
  std::sort(out.rows.begin(), out.rows.end(), [](const DiffRow& x, const DiffRow& y) { return x.change > y.change; });
  if (out.rows.size() > kMostRows) {  // the largest increases and the largest decreases
    out.left = out.rows.size() - kMostRows;
    const auto middle = out.rows.begin() + static_cast<std::ptrdiff_t>(kMostRows / 2);
    out.rows.erase(middle, middle + static_cast<std::ptrdiff_t>(out.left));
  }
  return out;
}

}  // namespace vramscope::serve
