#include <fmt/format.h>

#include "cli/answer.h"
#include "cli/ranks.h"
#include "cli/run_folder.h"
#include "cli/summary_answers.h"
#include "cli/summary_text.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace vramscope::cli {

namespace {

class SummaryVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operand("trace", place_, "a .vram file, or the folder of a run");
    arguments.text("--where", where_, "only blocks that match, in steps, phases and categories", "FILTER");
    arguments.flag("--json", json_, "for programs: exact bytes");
  }

  Result<int> run() override {
    const auto traces = traces_of(place_);
    if (!traces) return std::unexpected(traces.error());
    std::vector<std::string> unmatched;
    for (const auto& trace : *traces) {
      auto run = open_run(trace);
      if (!run) {
        if (traces->size() == 1) return std::unexpected(run.error());
        say_failure(run.error().message);
        continue;
      }
      if (auto ok = run->engine.check_matches(where_); !ok) {
        unmatched.push_back(fmt::format("{}: {}", trace.filename().string(), ok.error().message));
        continue;
      }
      say_damage(trace, run->summary.damage);
      runs_.push_back(std::move(*run));
    }
    if (traces->size() == 1 && !unmatched.empty()) return fail(unmatched[0]);
    for (const std::string& line : unmatched) say_failure(line, runs_.empty());
    if (runs_.empty()) return 2;
    json_ ? print_json(traces->size() > 1) : print_text();
    return 0;
  }

 private:
  struct Run {
    analyze::Summary summary;
    analyze::Engine engine;
  };

  Result<Run> open_run(const std::filesystem::path& trace) const {
    auto summary = analyze::summarize(trace.string());
    if (!summary) return std::unexpected(summary.error());
    if (summary->events == 0 && summary->damage.empty()) return no_event(trace);
    auto engine = analyze::Engine::open(trace);
    if (!engine) return std::unexpected(engine.error());
    if (auto ok = engine->check_filter(where_); !ok) return std::unexpected(ok.error());
    return Run{std::move(*summary), std::move(*engine)};
  }

  std::optional<RankComparison> ranks_of_run() const {
    std::vector<const analyze::Summary*> all;
    all.reserve(runs_.size());
    for (const Run& run : runs_) all.push_back(&run.summary);
    return compare_ranks(all);
  }

  void json_of(const Run& run, support::JsonWriter& json) const {
    summary_json(run.summary, json, [&] { summary_answers_json(run.engine, where_, json); });
  }

  void print_json(bool several) const {
    support::JsonWriter json;
    if (!several) {
      json_of(runs_[0], json);
    } else {
      json.begin_object();
      if (const auto ranks = ranks_of_run()) rank_json(*ranks, json.key("ranks"));
      json.key("processes").begin_array();
      for (const Run& run : runs_) json_of(run, json);
      json.end_array().end_object();
    }
    fmt::print("{}\n", json.text());
  }

  void print_text() const {
    const bool colour = wants_colour(stdout);
    if (runs_.size() > 1) fmt::print("{}\n\n", bold(fmt::format("{} processes were recorded.", runs_.size()), colour));
    if (const auto ranks = ranks_of_run()) fmt::print("{}", rank_text(*ranks));
    for (std::size_t i = 0; i < runs_.size(); ++i)
      fmt::print("{}{}{}", i > 0 ? "\n" : "", summary_text(runs_[i].summary, colour),
                 summary_answers_text(runs_[i].engine, where_));
  }

  std::vector<Run> runs_;
  std::string place_, where_;
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
