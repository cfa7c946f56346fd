#include <fmt/format.h>

#include <algorithm>

#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class LayersVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    options_.rows = 30;
    options_.declare(arguments);
    arguments.text("--at", at_, kInstantHelp, "INSTANT");
    arguments.count("--ops", ops_, "also show this many ops that take the most time in a step (default: 0)");
  }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int place) -> Result<Answer> {
      auto layers = engine.layers(at_, place, options_.where);
      if (!layers) return std::unexpected(layers.error());
      return Answer{text(*layers), analyze::to_json(*layers)};
    });
  }

 private:
  std::string text(const analyze::Layers& layers) const {
    analyze::Bytes most = 0;
    for (const analyze::LayerRow& r : layers.rows) most = std::max({most, r.own_peak, r.total});
    const Unit unit = Unit::for_largest(most);
    analyze::LayerRow sum;
    for (const analyze::LayerRow& r : layers.rows) {
      sum.parameters += r.parameters;
      sum.gradients += r.gradients;
      sum.activation_gradients += r.activation_gradients;
      sum.optimizer_state += r.optimizer_state;
      sum.activations += r.activations;
      sum.temporaries += r.temporaries;
      sum.other += r.inputs + r.other;
      sum.total += r.total;
      if (r.time_us) sum.time_us = sum.time_us.value_or(0) + *r.time_us;
    }
    Table table;
    table.column("LAYER", Table::Align::left);
    table.column("LINE", Table::Align::left, 8);
    // On a narrow terminal, what reads zero in every layer goes first.
    const auto part = [&](const char* head, int drop, analyze::Bytes all) {
      table.column(head, Table::Align::right, unit(all) == unit(0) ? 10 : drop);
    };
    part("PARAMETERS", 3, sum.parameters);
    part("GRADIENTS", 4, sum.gradients);
    part("OPTIMIZER", 5, sum.optimizer_state);
    part("ACTIVATIONS", 2, sum.activations);
    part("ACT. GRADIENTS", 9, sum.activation_gradients);
    part("TEMPORARIES", 6, sum.temporaries);
    part("OTHER", 7, sum.other);
    table.column(unit.name());
    table.column("OWN PEAK", Table::Align::right, 1);
    table.column("TIME", Table::Align::right, 1);
    std::size_t shown = 0;
    for (const analyze::LayerRow& r : layers.rows) {
      if (options_.rows != 0 && shown >= options_.rows) continue;
      ++shown;
      table.row(
          cells(r, r.name.empty() ? "– (outside layers)" : printable(r.name, 40), r.own_peak > 0 ? unit(r.own_peak) : "", unit));
    }
    if (layers.rows.size() > shown) table.row({fmt::format("{} more", layers.rows.size() - shown)});
    table.total(cells(sum, "all", "", unit));
    return headline(layers.sentence) + "\n" + table.text(wants_colour(stdout)) + ops_text(layers);
  }

  std::string ops_text(const analyze::Layers& layers) const {
    if (ops_ == 0 || layers.ops.empty()) return {};
    Table table;
    table.column("OP", Table::Align::left);
    table.column("LAYER", Table::Align::left);
    table.column("TIME");
    for (std::size_t i = 0; i < std::min<std::size_t>(ops_, layers.ops.size()); ++i)
      table.row(
          {printable(layers.ops[i].op, 60), printable(layers.ops[i].layer, 40), support::format_duration(layers.ops[i].time_us)});
    return "\n" + table.text(wants_colour(stdout));
  }

  static std::vector<std::string> cells(const analyze::LayerRow& r, const std::string& name, const std::string& own,
                                        const Unit& unit) {
    return {name,
            printable(r.line, 60),
            unit(r.parameters),
            unit(r.gradients),
            unit(r.optimizer_state),
            unit(r.activations),
            unit(r.activation_gradients),
            unit(r.temporaries),
            unit(r.inputs + r.other),
            unit(r.total),
            own,
            r.time_us ? support::format_duration(*r.time_us) : ""};
  }

  AnswerOptions options_;
  std::string at_ = "steady";
  std::uint64_t ops_ = 0;
};

const Register kVerb{{.name = "layers",
                      .group = Group::answer,
                      .help = "show the memory and time of each layer of the network",
                      .examples = "  vramscope layers run.vram\n"
                                  "  vramscope layers run.vram --at peak --where 'category:activations'\n"
                                  "  vramscope layers run.vram --ops 10\n",
                      .make = make<LayersVerb>}};

}  // namespace

}  // namespace vramscope::cli
