// Two runs side by side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analyze/labels.h"
#include "analyze/steps/pass_bands.h"
#include "analyze/verdict/budget_text.h"
#include "analyze/verdict/compare_view.h"
#include "serve/answer_parts.h"
#include "serve/engine_service.h"
#include "support/sentence.h"
#include "support/units.h"

namespace vramscope::serve {

namespace {

constexpr std::size_t kMostRows = 200;

double value_of(const std::vector<std::optional<analyze::Bytes>>& bytes, std::size_t i) {
  return i < bytes.size() && bytes[i] ? static_cast<double>(*bytes[i]) : 0;
}

// As the program reported them, otherwise from what was allocated, as in the timeline.
std::vector<Band> passes_of(const analyze::Engine& engine, std::uint64_t t0, std::uint64_t t1) {
  std::vector<Band> out;
  const auto add = [&](const std::string& name, std::int64_t number, std::uint64_t begin, std::uint64_t end) {
    if (end > begin && begin >= t0 && end <= t1)
      out.push_back({"phase", name, number, static_cast<double>(begin), static_cast<double>(end), 0});
  };
  for (const analyze::Mark& mark : engine.marks(t0, t1, "phase")) add(mark.name, mark.number, mark.begin_us, mark.end_us);
  if (!out.empty()) return out;
  for (const analyze::PassBand& pass : analyze::pass_bands(engine, t0, t1)) add(pass.name, 0, pass.begin_us, pass.end_us);
  return out;
}

DiffSide side_of(const Opened& trace, const std::string& name, std::string_view at, const std::string& filter) {
  const analyze::Engine& engine = trace.engine();
  const analyze::Steps& steps = trace.steps();
  const analyze::Step* step = analyze::compared_step(engine, steps, at);
  const std::uint64_t end = trace.overview().duration_us + 1;
  const std::uint64_t t0 = step != nullptr ? step->begin_us : 0;
  const std::uint64_t t1 = std::max(t0 + 1, step != nullptr ? step->end_us : end);
  DiffSide out;
  out.name = name;
  out.text = fmt::format("{}, {}", name, analyze::in_words(step));
  out.budget = analyze::budget_for(engine, name);
  const auto stacked = engine.stacked({.t0_us = t0, .t1_us = t1, .width = kTileColumns, .where = filter});
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
    out.peak_text = support::format_size(*most);
  }
  out.phases = passes_of(engine, t0, t1);
  return out;
}

DiffFigure figure(std::string name, std::string unit, std::optional<double> a, std::optional<double> b) {
  DiffFigure out{.name = std::move(name), .unit = std::move(unit), .a = a, .b = b};
  if (a && b) out.change = *b - *a;
  return out;
}

// Bytes of each group, split by category, at the instant that is compared.
using Split = std::map<std::string, std::map<std::string, double>>;
Split split_by(const analyze::Engine& engine, analyze::By by, const std::string& at, const std::string& filter) {
  Split out;
  const auto live = engine.live({.at = at, .by = {by, analyze::By::category}, .where = filter, .limit = 0});
  if (!live) return out;
  for (const analyze::Group& group : live->groups) out[group.keys[0]][group.keys[1]] += static_cast<double>(group.bytes);
  return out;
}

void add_figures(const analyze::CompareSide& a, const analyze::CompareSide& b, Diff& out) {
  const auto bytes = [&](std::string_view name, std::optional<analyze::Bytes> x, std::optional<analyze::Bytes> y) {
    out.figures.push_back(figure(support::capitalized(name), "bytes", x, y));
  };
  bytes(analyze::kSteadyPeakOfRun, a.steady_peak, b.steady_peak);
  bytes(analyze::kPeakOfRun, a.peak, b.peak);
  bytes(analyze::kLeftAfterStep, a.left_after, b.left_after);
  bytes(analyze::kPoolOfRun, a.regions, b.regions);
  out.figures.push_back(figure("Step time, median", "us", a.step_us, b.step_us));
  out.figures.push_back(figure(support::capitalized(analyze::kBlocksPerStep), "count", a.allocs_per_step, b.allocs_per_step));
}

// The highest that each pass reached in the step that is compared.
void add_phases(const std::array<const analyze::Engine*, 2>& runs, const DiffParams& params, Diff& out) {
  std::array<std::array<std::optional<double>, 3>, 2> peaks;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto steps = runs[r]->steps(-1, params.filter);
    if (!steps) return;
    const analyze::Step* step = analyze::compared_step(*runs[r], *steps, params.at);
    if (step == nullptr) continue;
    const std::array<analyze::Bytes, 3> reached = {step->forward_peak, step->backward_peak, step->optimizer_peak};
    for (std::size_t p = 0; p < reached.size(); ++p)
      if (reached[p] > 0) peaks[r][p] = static_cast<double>(reached[p]);
  }
  constexpr std::array kNames = {"Forward", "Backward", "Optimizer"};
  for (std::size_t p = 0; p < kNames.size(); ++p)
    if (peaks[0][p] || peaks[1][p]) out.phases.push_back(figure(kNames[p], "bytes", peaks[0][p], peaks[1][p]));
}

std::string why_of(const DiffRow& row) {
  const auto compared = [](const std::string& key, double a, double b) {
    return analyze::compare_row(key, static_cast<analyze::Bytes>(a), static_cast<analyze::Bytes>(b));
  };
  std::vector<analyze::CompareRow> parts;
  for (const DiffPart& part : row.parts) parts.push_back(compared(part.category, part.a, part.b));
  return analyze::why_changed(compared(row.name, row.a, row.b), std::move(parts));
}

void add_rows(const Split& a, const Split& b, Diff& out) {
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
  const auto compared = analyze::compare(runs, names, params.filter);
  if (!compared) return std::unexpected(compared.error());
  const analyze::CompareView shown = analyze::compare_view(*compared, params.at);
  Diff out;
  out.sentence = shown.sentence;
  out.note = shown.note;
  out.a = side_of(**first, names[0], params.at, params.filter);
  out.b = side_of(**second, names[1], params.at, params.filter);
  for (const auto& [name, values] : compared->settings) out.differs.push_back({name, values[0], values[1]});
  add_figures(compared->sides[0], compared->sides[1], out);
  add_phases(runs, params, out);
  for (const analyze::CompareRow& row : shown.categories) {
    out.categories.push_back(figure(row.key, "bytes", value_of(row.bytes, 0), value_of(row.bytes, 1)));
    out.categories.back().category = row.key;
  }
  for (const DiffFigure& f : out.categories) {
    out.total.a += *f.a;
    out.total.b += *f.b;
  }
  out.total.name = "All";
  out.total.change = out.total.b - out.total.a;
  add_rows(split_by(*runs[0], *by, shown.at[0], params.filter), split_by(*runs[1], *by, shown.at[1], params.filter), out);
  return out;
}

}  // namespace vramscope::serve
