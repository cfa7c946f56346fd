#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyze/whatif/candidates.h"
#include "analyze/whatif/changes.h"
#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class WhatifVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    options_.declare(arguments);
    arguments.text("--allocator", request_.allocator,
                   fmt::format("replay with: {}, or settings such as max_split_size_mb:128 (default: those that may help)",
                               fmt::join(analyze::allocator_names(), ", ")),
                   "NAME");
    arguments.size("--limit", request_.limit, "the most that the pool may hold, e.g. 16GiB");
    arguments.text("--optimizer", request_.optimizer,
                   fmt::format("use another optimizer: {}", fmt::join(analyze::optimizer_names(), ", ")), "NAME");
    arguments.text("--precision", request_.precision, fmt::format("compute in {}", fmt::join(analyze::precision_names(), " or ")),
                   "NAME");
    arguments.text("--checkpoint", request_.checkpoint,
                   "recompute the activations of these layers: names separated by commas, or all", "LAYERS");
    arguments.count("--accumulate", request_.accumulate, "split each batch into this many parts and accumulate gradients");
  }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int place) -> Result<Answer> {
      request_.where = options_.where;
      request_.place = place;
      auto answer = engine.whatif(request_);
      if (!answer) return std::unexpected(answer.error());
      return Answer{text(*answer), analyze::to_json(*answer)};
    });
  }

 private:
  static std::string text(const analyze::Whatif& answer) {
    const Unit unit = Unit::for_all(answer.rows, [](const analyze::WhatifRow& row) { return row.reserved_high; });
    std::string out = headline(answer.sentence);
    for (const std::string& change : answer.changes)
      out += fmt::format("Changed: {} ({} confidence)\n", change, answer.confidence);
    Table table;
    table.column("ALLOCATOR", Table::Align::left);
    for (const std::string& head : {"POOL, " + unit.name(), std::string("RANGE"), std::string("COMPLETES WITH"),
                                    std::string("FLUSHES"), std::string("DEVICE CALLS")})
      table.column(head);
    table.column("SETTING", Table::Align::left);
    for (const analyze::WhatifRow& row : answer.rows)
      table.row({printable(row.name, 40), row.completes ? unit(row.reserved) : "fails",
                 row.reserved_low == row.reserved_high ? "" : unit(row.reserved_low) + "–" + unit(row.reserved_high),
                 row.smallest ? unit(*row.smallest) : "–", support::format_count(row.flushes),
                 support::format_count(row.device_calls), printable(row.setting, 60)});
    out += "\n" + table.text(wants_colour(stdout)) + "\n" + bounds(answer, unit);
    for (const std::string& assumption : answer.assumptions) out += in_a_sentence(assumption) + "\n";
    return out;
  }

  static std::string bounds(const analyze::Whatif& answer, const Unit& unit) {
    Table table;
    table.column("HOW LOW IT COULD GO", Table::Align::left);
    table.column(unit.name());
    table.row({"requested bytes", unit(answer.requested)});
    table.row({"rounded to the allocator's unit", unit(answer.live)});
    if (answer.per_stream > answer.live) table.row({"each stream on its own", unit(answer.per_stream)});
    table.row({"whole pages of 2 MiB for blocks above 1 MiB", unit(answer.paged)});
    if (answer.packed) table.row({"best placement found", unit(*answer.packed)});
    if (answer.recorded)
      table.row({answer.exact.value_or(false) ? "recorded (the replay makes the same device calls)" : "recorded",
                 unit(*answer.recorded)});
    return table.text(wants_colour(stdout));
  }

  AnswerOptions options_;
  analyze::WhatifRequest request_;
};

const Register kVerb{{.name = "whatif",
                      .group = Group::answer,
                      .help = "show what the run would need with other allocators, settings or changes to the program",
                      .examples = "  vramscope whatif run.vram\n"
                                  "  vramscope whatif run.vram --allocator expandable --limit 16GiB\n"
                                  "  vramscope whatif run.vram --optimizer sgd\n",
                      .make = make<WhatifVerb>}};

}  // namespace

}  // namespace vramscope::cli
