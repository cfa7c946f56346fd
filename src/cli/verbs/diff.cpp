#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/labels.h"
#include "cli/show/answer.h"
#include "cli/show/diff_sides.h"
#include "cli/show/plot.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

// The last two parts of a path: the op and what it belongs to.
std::string op_in_layer(const std::string& op) {
  std::size_t slash = op.rfind('/');
  std::size_t before = slash == std::string::npos || slash == 0 ? std::string::npos : op.rfind('/', slash - 1);
  return before == std::string::npos ? op : op.substr(before + 1);
}

class DiffVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operands("traces", traces_, "two or more .vram files or run folders; a single folder compares its ranks");
    arguments.text("--where", where_, kCompareWhereHelp, "FILTER");
    arguments.count("-n,--rows", rows_, kRowsHelp);
    arguments.flag("--json", json_, kJsonHelp);
    arguments.flag("--ascii", ascii_, "draw bars with # only");
  }

  Result<int> run() override {
    auto sides = diff_sides(traces_);
    if (!sides) return std::unexpected(sides.error());
    std::vector<const analyze::Engine*> runs;
    runs.reserve(sides->engines.size());
    for (const analyze::Engine& engine : sides->engines) runs.push_back(&engine);
    Status matches;
    for (const analyze::Engine* run : runs)  // one side without such blocks is a difference, none with any is a slip
      if (matches = run->check_matches(where_); matches) break;
    if (!matches) return std::unexpected(matches.error());
    auto compared = analyze::compare(runs, sides->names, where_);
    if (!compared) return std::unexpected(compared.error());
    if (!sides->about_ranks.empty()) compared->sentence = sides->about_ranks + " " + compared->sentence;
    fmt::print("{}", json_ ? analyze::to_json(*compared) + "\n" : text(*compared));
    return 0;
  }

 private:
  std::string table_of(const std::string& head, const std::vector<analyze::CompareRow>& rows, const analyze::Compare& c) const {
    std::uint64_t widest = 0;
    for (const auto& row : rows)
      for (const auto& bytes : row.bytes) widest = std::max(widest, bytes.value_or(0));
    const Unit unit = Unit::for_largest(widest);
    Table table;
    table.column(fmt::format("{}, {}", head, unit.name()), Table::Align::left);
    for (const analyze::CompareSide& side : c.sides) table.column(printable(side.name, 24));
    table.column("CHANGE");
    table.column(std::string(12, ' '), Table::Align::left, 1);
    std::size_t shown = 0;
    for (const analyze::CompareRow& row : rows) {
      if (row.change == 0 && shown > 0 && head != "CATEGORY") continue;
      if (rows_ != 0 && shown++ >= rows_) break;
      bool category = head.starts_with("CATEGORY");
      std::vector<std::string> cells = {category ? in_category(row.key) : dash(head == "OP" ? op_in_layer(row.key) : row.key)};
      for (const auto& bytes : row.bytes) cells.push_back(bytes ? unit(*bytes) : "–");
      cells.push_back(unit.with_sign(row.change));
      if (wants_colour(stdout) || ascii_) {
        std::string length = bar(row.bytes.back().value_or(0), widest, 12, ascii_);
        cells.push_back(category ? in_category(row.key, length) : length);
      }
      table.row(cells);
    }
    return "\n" + table.text(wants_colour(stdout));
  }

  // What the runs were started with is the likely reason for all that follows.
  static std::string settings_of(const analyze::Compare& c) {
    if (c.settings.empty()) return {};
    Table table;
    table.column("WHAT DIFFERS", Table::Align::left);
    for (const analyze::CompareSide& side : c.sides) table.column(printable(side.name, 24), Table::Align::left);
    for (const auto& [key, values] : c.settings) {
      std::vector<std::string> cells = {printable(key, 40)};
      for (const std::string& value : values) cells.push_back(dash(printable(value, 40)));
      table.row(cells);
    }
    return "\n" + table.text(wants_colour(stdout));
  }

  std::string text(const analyze::Compare& c) const {
    std::string out = headline(c.sentence);
    if (!c.pace_sentence.empty()) out += in_a_sentence(c.pace_sentence) + "\n";
    out += settings_of(c);
    const Unit unit =
        Unit::for_all(c.sides, [](const analyze::CompareSide& s) { return std::max(s.peak, s.regions.value_or(0)); });
    Table sides;
    sides.column(fmt::format("{}, {}", unit.name(), c.basis), Table::Align::left);
    for (const analyze::CompareSide& side : c.sides) sides.column(printable(side.name, 24));
    auto line = [&](std::string_view name, auto figure) {
      std::vector<std::string> cells = {std::string(name)};
      for (const analyze::CompareSide& side : c.sides) cells.push_back(figure(side));
      sides.row(cells);
    };
    const auto known = [&](const std::optional<analyze::Bytes>& bytes) { return bytes ? unit(*bytes) : "–"; };
    line(analyze::kSteadyPeakOfRun, [&](const analyze::CompareSide& s) { return known(s.steady_peak); });
    line(analyze::kPeakOfRun, [&](const analyze::CompareSide& s) { return unit(s.peak); });
    line(analyze::kLeftAfterStep, [&](const analyze::CompareSide& s) { return known(s.left_after); });
    line(analyze::kPoolOfRun, [&](const analyze::CompareSide& s) { return known(s.regions); });
    line("steps", [](const analyze::CompareSide& s) { return support::format_count(s.steps); });
    line(analyze::kBlocksPerStep,
         [](const analyze::CompareSide& s) { return s.allocs_per_step ? support::format_count(*s.allocs_per_step) : "–"; });
    line("a step every",
         [](const analyze::CompareSide& s) { return s.interval_us ? support::format_duration(*s.interval_us) : "–"; });
    line(analyze::kSamplesPerStep,
         [](const analyze::CompareSide& s) { return s.samples ? support::format_count(*s.samples) : "–"; });
    line("samples per second", [](const analyze::CompareSide& s) {
      return s.samples_per_s ? support::format_count(static_cast<std::uint64_t>(std::llround(*s.samples_per_s))) : "–";
    });
    out += "\n" + sides.text(wants_colour(stdout));
    out += table_of("CATEGORY", c.categories, c) + table_of("LAYER", c.layers, c) + table_of("OP", c.ops, c) +
           table_of("DTYPE", c.dtypes, c);
    if (!c.same_place.empty()) out += table_of("CATEGORY, SAME PLACE", c.same_place, c);
    return out;
  }

  std::vector<std::string> traces_;
  std::string where_;
  std::uint64_t rows_ = 10;
  bool json_ = false, ascii_ = false;
};

const Register kVerb{{.name = "diff",
                      .group = Group::answer,
                      .help = "compare runs: what grew, what shrank, and why",
                      .examples = "  vramscope diff float32.vram mixed.vram\n"
                                  "  vramscope diff vramscope-runs/latest          (the ranks of one run)\n"
                                  "  vramscope diff batch32.vram batch64.vram batch128.vram --where 'category:activations'\n",
                      .make = make<DiffVerb>}};

}  // namespace

}  // namespace vramscope::cli
