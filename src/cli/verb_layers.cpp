#include <fmt/format.h>

#include <algorithm>

#include "cli/answer.h"
#include "cli/terminal.h"
#include "cli/unit.h"

namespace vramscope::cli {

namespace {

class LayersVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    options_.rows = 30;
    options_.declare(arguments);
    arguments.text("--at", at_, "peak, steady, end, step:N, a time such as 6.2s", "INSTANT");
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
    Table table;
    table.column("LAYER", Table::Align::left);
    table.column("LINE", Table::Align::left);
    for (const char* head :
         {"PARAMETERS", "GRADIENTS", "OPTIMIZER", "ACTIVATIONS", "TEMPORARIES", "OTHER", unit.name().c_str(), "ITS OWN PEAK"})
      table.column(head);
    analyze::LayerRow sum;
    std::size_t shown = 0;
    for (const analyze::LayerRow& r : layers.rows) {
      sum.parameters += r.parameters, sum.gradients += r.gradients, sum.optimizer_state += r.optimizer_state;
      sum.activations += r.activations, sum.temporaries += r.temporaries, sum.other += r.inputs + r.other, sum.total += r.total;
      if (options_.rows != 0 && shown >= options_.rows) continue;
      ++shown;
      table.row(
          cells(r, r.name.empty() ? "– (outside layers)" : printable(r.name, 40), r.own_peak > 0 ? unit(r.own_peak) : "", unit));
    }
    if (layers.rows.size() > shown) table.row({fmt::format("{} more", layers.rows.size() - shown)});
    table.total(cells(sum, "all", "", unit));
    return headline(layers.sentence) + "\n" + table.text(wants_colour(stdout));
  }

  static std::vector<std::string> cells(const analyze::LayerRow& r, const std::string& name, const std::string& own,
                                        const Unit& unit) {
    return {name,
            printable(r.line, 60),
            unit(r.parameters),
            unit(r.gradients),
            unit(r.optimizer_state),
            unit(r.activations),
            unit(r.temporaries),
            unit(r.inputs + r.other),
            unit(r.total),
            own};
  }

  AnswerOptions options_;
  std::string at_ = "steady";
};

const Register kVerb{{.name = "layers",
                      .group = Group::answer,
                      .help = "memory of each layer of the network, by category",
                      .examples = "  vramscope layers run.vram\n"
                                  "  vramscope layers run.vram --at peak --where 'category:activations'\n",
                      .make = make<LayersVerb>}};

}  // namespace

}  // namespace vramscope::cli
