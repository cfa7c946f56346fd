#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cli/answer.h"
#include "cli/plot.h"
#include "cli/terminal.h"
#include "cli/unit.h"
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
            known(s.forward_peak),
            known(s.backward_peak),
            known(s.optimizer_peak),
            known(s.before_optimizer),
            known(s.after_optimizer),
            s.warmup    ? "warm-up"
            : s.outlier ? in_a_sentence(s.why)
                        : ""};
  }

  std::string text(const analyze::Steps& steps, const std::vector<analyze::Phase>& phases) const {
    std::string out = headline(steps.sentence);
    bool colour = wants_colour(stdout);
    if (!steps.steps.empty()) {
      std::vector<std::uint64_t> peaks;
      for (const analyze::Step& s : steps.steps) peaks.push_back(s.peak);
      const Unit unit = Unit::for_all(peaks, std::identity());
      out += "\n" + dim(fmt::format("  {}, peak of each step", unit.name()), colour) + "\n" +
             plot(peaks, (steps.steps.front().kind == "train" ? "step " : "") + name_of(steps.steps.front()),
                  name_of(steps.steps.back()), options_.ascii);
      Table table;
      table.column("STEP", Table::Align::left);
      table.column("PEAK " + unit.name());
      for (const char* head :
           {"GROWTH", "AFTER", "ALLOCATED", "CHURN", "BLOCKS", "FORWARD", "BACKWARD", "OPTIMIZER", "BEFORE OPT", "AFTER OPT"})
        table.column(head);
      table.column("", Table::Align::left);
      // First, odd and last ones; those between are alike.
      std::size_t n = steps.steps.size(), limit = options_.rows == 0 ? n : options_.rows, shown = 0;
      bool gap = false;
      for (std::size_t i = 0; i < n; ++i) {
        const analyze::Step& s = steps.steps[i];
        if (i < limit - std::min<std::size_t>(limit, 2) || i + 2 >= n || (s.outlier && shown < 2 * limit)) {
          table.row(row(s, unit));
          ++shown;
          gap = false;
        } else if (!gap) {
          table.row({"…"});
          gap = true;
        }
      }
      out += "\n" + table.text(colour);
    }
    if (!phases.empty()) {
      Table table;
      table.column("PHASE", Table::Align::left);
      const Unit unit = Unit::for_all(phases, [](const analyze::Phase& p) { return p.peak; });
      const Unit host = Unit::for_all(phases, [](const analyze::Phase& p) { return p.host_peak; });
      for (const std::string& head :
           {std::string("TIMES"), std::string("FROM"), std::string("FOR"), "PEAK " + unit.name(), std::string("KEPT"),
            std::string("ALLOCATED"), std::string("BLOCKS"), "HOST PEAK " + host.name()})
        table.column(head);
      // The same phase may come many times: one row for each name, in the order of the first.
      std::vector<analyze::Phase> rows;
      std::vector<std::uint64_t> times, lasted;
      for (const analyze::Phase& p : phases) {
        auto it = std::ranges::find(rows, p.name, &analyze::Phase::name);
        auto i = static_cast<std::size_t>(it - rows.begin());
        if (it == rows.end()) {
          rows.push_back(p);
          times.push_back(0);
          lasted.push_back(0);
        } else {
          it->peak = std::max(it->peak, p.peak);
          it->growth_kept += p.growth_kept;
          it->allocated += p.allocated;
          it->allocs += p.allocs;
          it->host_peak = std::max(it->host_peak, p.host_peak);
        }
        times[i] += 1;
        lasted[i] += p.end_us - p.begin_us;
      }
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const analyze::Phase& p = rows[i];
        table.row({printable(p.name, 30), support::format_count(times[i]), age(p.begin_us), age(lasted[i]), unit(p.peak),
                   unit(p.growth_kept), unit(p.allocated), support::format_count(p.allocs),
                   p.host_peak == 0 ? "–" : host(p.host_peak)});
      }
      out += "\n" + table.text(colour);
    }
    return out;
  }

  AnswerOptions options_;
};

const Register kVerb{{.name = "steps",
                      .group = Group::answer,
                      .help = "memory of each step and phase: peak, growth, churn",
                      .examples = "  vramscope steps run.vram\n"
                                  "  vramscope steps run.vram -n 0 --json | jq '.steps.steps[].peak'\n"
                                  "  vramscope steps run.vram --where 'category:activations'\n",
                      .make = make<StepsVerb>}};

}  // namespace

}  // namespace vramscope::cli
