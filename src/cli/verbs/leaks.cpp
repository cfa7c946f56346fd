#include <fmt/format.h>

#include <functional>

#include <cmath>

#include "cli/show/answer.h"
#include "cli/show/plot.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

std::string size(double bytes) { return support::format_size(static_cast<std::uint64_t>(std::llround(bytes < 0 ? 0 : bytes))); }

class LeaksVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override { options_.declare(arguments); }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int place) -> Result<Answer> {
      auto leaks = engine.leaks(place, options_.where);
      if (!leaks) return std::unexpected(leaks.error());
      return Answer{text(engine, *leaks), analyze::to_json(*leaks)};
    });
  }

 private:
  std::string text(const analyze::Engine& engine, const analyze::Leaks& leaks) const {
    std::string out = headline(leaks.sentence, leaks.verdict == "growing");
    bool colour = wants_colour(stdout);
    if (!leaks.rows.empty()) {
      Table table;
      for (const auto& [head, drop] : {std::pair{"GROWS", 0}, {"LAYER", 3}, {"ALLOCATED AT", 0}, {"OP", 2}, {"SINCE", 1}})
        table.column(head, Table::Align::left, drop);
      for (const auto& [head, drop] : {std::pair{"BLOCKS", 4}, {"PER STEP", 0}, {"95 % INTERVAL", 5}, {"SO FAR", 0}})
        table.column(head, Table::Align::right, drop);
      std::size_t shown = 0;
      for (const analyze::LeakRow& r : leaks.rows) {
        if (options_.rows != 0 && shown++ >= options_.rows) break;
        table.row({in_category(r.category), dash(r.layer), dash(r.line), dash(short_op(r.op)),
                   fmt::format("step {}", r.since_step), support::format_count(r.blocks), size(r.bytes_per_step),
                   fmt::format("{} to {}", size(r.low), size(r.high)), support::format_size(r.so_far)});
      }
      if (leaks.rows.size() > shown) table.row({fmt::format("{} more", leaks.rows.size() - shown)});
      out += "\n" + table.text(colour);
    }
    if (leaks.verdict != "not growing" && leaks.left_after.size() > 1)
      out += "\n" +
             dim(fmt::format("  {} left after each step", Unit::for_all(leaks.left_after, std::identity()).name()), colour) +
             "\n" +
             plot(leaks.left_after, fmt::format("step {}", leaks.step_number.front()), std::to_string(leaks.step_number.back()),
                  options_.ascii, leaks.rows.empty() ? "" : leaks.rows[0].category);
    if (!leaks.rows.empty() && !leaks.rows[0].examples.empty()) {
      Table table;
      table.column("STILL LIVE", Table::Align::left);
      for (const char* head : {"ADDRESS", "BORN IN", "AGE", "SIZE"}) table.column(head);
      std::uint64_t end = engine.overview().duration_us;
      for (std::uint64_t id : leaks.rows[0].examples) {
        auto block = engine.allocation(id);
        if (!block) continue;
        table.row({fmt::format("block {}", id), fmt::format("0x{:x}", block->address),
                   block->step > 0 ? fmt::format("step {}", block->step) : "–", age(end - block->birth_us),
                   support::format_size(block->granted)});
      }
      out += "\n" + table.text(colour);
    }
    return out + to_do(leaks.advice);
  }

  AnswerOptions options_;
};

const Register kVerb{{.name = "leaks",
                      .group = Group::answer,
                      .help = "find memory that grows from step to step, and what keeps it alive",
                      .examples = "  vramscope leaks run.vram\n"
                                  "  vramscope leaks run.vram --json | jq .verdict\n",
                      .make = make<LeaksVerb>}};

}  // namespace

}  // namespace vramscope::cli
