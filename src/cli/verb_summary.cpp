#include <fmt/format.h>

#include "cli/run_folder.h"
#include "cli/summary_text.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace vramscope::cli {

namespace {

class SummaryVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operand("trace", place_, "a .vram file, or the folder of a run");
    arguments.flag("--json", json_, "for programs: exact bytes");
  }

  Result<int> run() override {
    const auto traces = traces_of(place_);
    if (!traces) return std::unexpected(traces.error());
    std::vector<analyze::Summary> summaries;
    for (const auto& trace : *traces) {
      auto summary = analyze::summarize(trace.string());
      if (!summary) return std::unexpected(summary.error());
      summaries.push_back(std::move(*summary));
    }
    json_ ? print_json(summaries) : print_text(summaries);
    return 0;
  }

 private:
  static void print_json(const std::vector<analyze::Summary>& summaries) {
    support::JsonWriter json;
    if (summaries.size() == 1) {
      summary_json(summaries[0], json);
    } else {
      json.begin_object().key("processes").begin_array();
      for (const auto& summary : summaries) summary_json(summary, json);
      json.end_array().end_object();
    }
    fmt::print("{}\n", json.text());
  }

  static void print_text(const std::vector<analyze::Summary>& summaries) {
    const bool colour = wants_colour(stdout);
    if (summaries.size() > 1) fmt::print("{}\n\n", bold(fmt::format("{} processes were recorded.", summaries.size()), colour));
    for (std::size_t i = 0; i < summaries.size(); ++i) fmt::print("{}{}", i > 0 ? "\n" : "", summary_text(summaries[i], colour));
  }

  std::string place_;
  bool json_ = false;
};

const Register kVerb{{.name = "summary",
                      .group = Group::answer,
                      .help = "what was recorded, in a handful of figures",
                      .examples = "  vramscope summary run.vram\n"
                                  "  vramscope summary --json vramscope-runs/latest | jq '.pools[0].peak_bytes'\n",
                      .make = make<SummaryVerb>}};

}  // namespace

}  // namespace vramscope::cli
