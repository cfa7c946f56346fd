#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "cli/show/answer.h"
#include "cli/show/plot.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class StepsVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override { options_.declare(arguments); }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int place) -> Result<Answer> {
      auto steps = engine.steps(place, options_.where);
      if (!steps) return std::unexpected(steps.error());
      support::JsonWriter json;
      json.begin_object().key("steps");
      analyze::write(json, *steps);
      json.key("phases").begin_array();
      std::vector<analyze::Phase> phases = engine.phases(place, options_.where).value_or(std::vector<analyze::Phase>{});
      for (const analyze::Phase& phase : phases) analyze::write(json, phase);
      json.end_array().end_object();
      return Answer{text(*steps, phases), json.text()};
    });
  }

 private:
  static std::string name_of(const analyze::Step& s) {
    return s.kind == "train" ? std::to_string(s.number) : fmt::format("{} {}", printable(s.kind, 40), s.number);
  }

  static std::vector<std::string> row(const analyze::Step& s, const Unit& unit) {
    auto known = [&](analyze::Bytes bytes) { return bytes == 0 ? std::string("–") : unit(bytes); };
    return {name_of(s),
            unit(s.peak),
            unit.with_sign(s.growth),
            unit(s.after),
            unit(s.allocated),
            fmt::format("{:.1f}", s.churn),
            support::format_count(s.allocs),
            support::format_duration(s.end_us - std::min(s.begin_us, s.end_us)),
            s.samples ? support::format_count(*s.samples) : "–",
            known(s.forward_peak),
            known(s.backward_peak),
            known(s.optimizer_peak),
            known(s.before_optimizer),
            known(s.after_optimizer),
            s.warmup ? "warm-up" : in_a_sentence(s.why)};
  }

  std::string text(const analyze::Steps& steps, const std::vector<analyze::Phase>& phases) const {
    std::string out = headline(steps.sentence);
    if (!steps.pace.empty()) out += in_a_sentence(steps.pace) + "\n";
    if (!steps.steps.empty()) out += steps_text(steps.steps);
    if (!phases.empty()) out += phases_text(phases);
    return out;
  }

  std::string steps_text(const std::vector<analyze::Step>& steps) const {
    const bool colour = wants_colour(stdout);
    std::vector<std::uint64_t> peaks;
    for (const analyze::Step& s : steps) peaks.push_back(s.peak);
    const Unit unit = Unit::for_all(peaks, std::identity());
    const std::string first = (steps.front().kind == "train" ? "step " : "") + name_of(steps.front());
    return "\n" + dim(fmt::format("  {}, peak of each step", unit.name()), colour) + "\n" +
           plot(peaks, first, name_of(steps.back()), options_.ascii) + "\n" + steps_table(steps, unit).text(colour);
  }

  // The first, unusual and last steps; those in between are alike.
  Table steps_table(const std::vector<analyze::Step>& steps, const Unit& unit) const {
    Table table;
    table.column("STEP", Table::Align::left);
    table.column("PEAK " + unit.name());
    for (const auto& [head, drop] : {std::pair{"GROWTH", 1},
                                     {"AFTER", 2},
                                     {"ALLOCATED", 6},
                                     {"CHURN", 8},
                                     {"BLOCKS", 7},
                                     {"TIME", 4},
                                     {"SAMPLES", 5},
                                     {"FORWARD", 3},
                                     {"BACKWARD", 3},
                                     {"OPTIMIZER", 3},
                                     {"BEFORE OPT", 9},
                                     {"AFTER OPT", 9}})
      table.column(head, Table::Align::right, drop);
    table.column("", Table::Align::sentence);
    const std::size_t n = steps.size();
    const std::size_t limit = options_.rows == 0 ? n : options_.rows;
    std::size_t shown = 0;
    bool gap = false;
    for (std::size_t i = 0; i < n; ++i) {
      const analyze::Step& s = steps[i];
      if (i < limit - std::min<std::size_t>(limit, 2) || i + 2 >= n || (s.outlier && shown < 2 * limit)) {
        table.row(row(s, unit));
        ++shown;
        gap = false;
      } else if (!gap) {
        table.row({"…"});
        gap = true;
      }
    }
    return table;
  }

  // All occurrences of one phase.
  struct PhaseTotals {
    analyze::Phase phase;  // starts with the first occurrence; sums and peaks are of all
    std::uint64_t times = 0;
    std::uint64_t lasted_us = 0;
  };

  // The same phase may occur many times: one entry per name, in the order of the first occurrence.
  static std::vector<PhaseTotals> by_name(const std::vector<analyze::Phase>& phases) {
    std::vector<PhaseTotals> all;
    std::unordered_map<std::string_view, std::size_t> place;
    for (const analyze::Phase& p : phases) {
      const auto [it, first] = place.try_emplace(p.name, all.size());
      if (first) all.push_back({.phase = p});
      PhaseTotals& totals = all[it->second];
      if (!first) {
        analyze::Phase& total = totals.phase;
        total.peak = std::max(total.peak, p.peak);
        total.growth_kept += p.growth_kept;
        total.allocated += p.allocated;
        total.allocs += p.allocs;
        total.host_peak = std::max(total.host_peak, p.host_peak);
      }
      totals.times += 1;
      totals.lasted_us += p.end_us - p.begin_us;
    }
    return all;
  }

  static std::string phases_text(const std::vector<analyze::Phase>& phases) {
    Table table;
    table.column("PHASE", Table::Align::left);
    const Unit unit = Unit::for_all(phases, [](const analyze::Phase& p) { return p.peak; });
    const Unit host = Unit::for_all(phases, [](const analyze::Phase& p) { return p.host_peak; });
    using Head = std::pair<std::string, int>;
    for (const auto& [head, drop] :
         {Head{"TIMES", 4}, Head{"FROM", 0}, Head{"FOR", 0}, Head{"PEAK " + unit.name(), 0}, Head{"KEPT", 0},
          Head{"ALLOCATED", 2}, Head{"BLOCKS", 3}, Head{"HOST PEAK " + host.name(), 1}})
      table.column(head, Table::Align::right, drop);
    for (const auto& [p, times, lasted_us] : by_name(phases)) {
      table.row({printable(p.name, 30), support::format_count(times), support::format_duration(p.begin_us),
                 support::format_duration(lasted_us), unit(p.peak), unit(p.growth_kept), unit(p.allocated),
                 support::format_count(p.allocs), p.host_peak == 0 ? "–" : host(p.host_peak)});
    }
    return "\n" + table.text(wants_colour(stdout));
  }

  AnswerOptions options_;
};

const Register kVerb{{.name = "steps",
                      .group = Group::answer,
                      .help = "show the memory of each step and phase: peak, growth, churn",
                      .examples = "  vramscope steps run.vram\n"
                                  "  vramscope steps run.vram -n 0 --json | jq '.steps.steps[].peak'\n"
                                  "  vramscope steps run.vram --where 'category:activations'\n",
                      .make = make<StepsVerb>}};

}  // namespace

}  // namespace vramscope::cli
