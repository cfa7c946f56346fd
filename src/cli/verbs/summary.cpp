#include <fmt/format.h>

#include "analyze/verdict/ranks.h"
#include "cli/run_folder.h"
#include "cli/show/answer.h"
#include "cli/show/ranks.h"
#include "cli/show/summary_text.h"
#include "cli/show/terminal.h"
#include "cli/verb.h"

namespace vramscope::cli {

namespace {

class SummaryVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    arguments.operand("trace", place_, kTraceHelp);
    arguments.text("--where", where_, "count only matching blocks in steps, phases and categories", "FILTER");
    arguments.flag("--json", json_, kJsonHelp);
  }

  Result<int> run() override {
    const auto traces = traces_of(place_);
    if (!traces) return std::unexpected(traces.error());
    std::vector<std::string> unmatched;
    for (const auto& trace : *traces) {
      auto run = open_run(trace, unmatched);
      if (!run) {
        if (traces->size() == 1) return std::unexpected(run.error());
        say_failure(run.error().message);
        continue;
      }
      if (!run->matches) continue;
      say_damage(trace, run->summary.damage.value_or(""));
      if (run->summary.overview) say_source(*run->summary.overview);
      runs_.push_back(std::move(*run));
    }
    if (traces->size() == 1 && !unmatched.empty()) return fail(unmatched[0]);
    for (const std::string& line : unmatched) say_failure(line, runs_.empty());
    if (runs_.empty()) return 2;
    json_ ? print_json(traces->size() > 1) : print_text();
    return 0;
  }

 private:
  // What is printed of one trace. The engine is closed again: a run may have hundreds of processes.
  struct Run {
    analyze::Summary summary;
    std::optional<analyze::RankPeak> rank;
    bool matches = true;
  };

  Result<Run> open_run(const std::filesystem::path& trace, std::vector<std::string>& unmatched) const {
    const auto engine = analyze::Engine::open(trace);
    if (!engine) return std::unexpected(engine.error());
    if (auto ok = engine->check_filter(where_); !ok) return std::unexpected(ok.error());
    if (auto ok = engine->check_matches(where_); !ok) {
      unmatched.push_back(fmt::format("{}: {}", trace.filename().string(), ok.error().message));
      return Run{.summary = {}, .rank = {}, .matches = false};
    }
    Run run{.summary = engine->summary(where_), .rank = {}};
    if (run.summary.events == 0 && !run.summary.damage) return no_event(trace);
    if (const auto rank = run.summary.overview->rank) run.rank = analyze::rank_peak(*rank, *engine);
    return run;
  }

  std::optional<analyze::Ranks> ranks_of_run() const {
    std::vector<analyze::RankPeak> ranks;
    for (const Run& run : runs_)
      if (run.rank) ranks.push_back(*run.rank);
    return analyze::compare_ranks(std::move(ranks));
  }

  void print_json(bool several) const {
    support::JsonWriter json;
    if (!several) {
      analyze::write(json, runs_[0].summary);
    } else {
      json.begin_object();
      if (const auto ranks = ranks_of_run()) analyze::write(json.key("ranks"), *ranks);
      json.key("processes").begin_array();
      for (const Run& run : runs_) analyze::write(json, run.summary);
      json.end_array().end_object();
    }
    fmt::print("{}\n", json.text());
  }

  void print_text() const {
    const bool colour = wants_colour(stdout);
    if (runs_.size() > 1) fmt::print("{}\n\n", bold(fmt::format("{} processes were recorded.", runs_.size()), colour));
    if (const auto ranks = ranks_of_run()) fmt::print("{}", rank_text(*ranks));
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (i > 0) fmt::print("\n");
      if (runs_.size() > 1) fmt::print("{}\n", dim(head_of(runs_[i].summary.overview->path), colour));
      fmt::print("{}", summary_text(runs_[i].summary, colour));
    }
  }

  std::vector<Run> runs_;
  std::string place_, where_;
  bool json_ = false;
};

const Register kVerb{{.name = "summary",
                      .group = Group::answer,
                      .help = "show what was recorded, at a glance",
                      .examples = "  vramscope summary run.vram\n"
                                  "  vramscope summary --json vramscope-runs/latest | jq '.pools[0].peak_bytes'\n",
                      .make = make<SummaryVerb>}};

}  // namespace

}  // namespace vramscope::cli
