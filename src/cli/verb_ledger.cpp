#include <fmt/format.h>

#include "cli/answer.h"
#include "cli/terminal.h"
#include "cli/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class LedgerVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    options_.declare(arguments);
    arguments.text("--at", at_, "peak, steady, end, step:N, a time such as 6.2s, oom", "INSTANT");
  }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int place) -> Result<Answer> {
      auto ledger = engine.ledger(at_, place, options_.where);
      if (!ledger) return std::unexpected(ledger.error());
      return Answer{text(*ledger), analyze::to_json(*ledger)};
    });
  }

 private:
  // Where the blocks of a small model would all read 0.0 MiB, everything is in KiB.
  static Unit unit_of(const analyze::Ledger& ledger) {
    return Unit::for_all(ledger.lines, [](const analyze::LedgerLine& line) {
      return line.name == "live blocks" ? line.bytes.value_or(0) : analyze::Bytes{0};
    });
  }

  static void add(Table& table, const analyze::LedgerLine& line, const Unit& unit) {
    table.row({printable(line.name), line.bytes ? unit(*line.bytes) : "–", line.residual ? unit.with_sign(*line.residual) : "",
               in_a_sentence(line.note)});
    for (const auto& [name, bytes] : line.parts)
      table.row(
          {line.name.ends_with("category") ? in_category(name, "  " + name) : "  " + printable(name, 60), unit(bytes), "", ""});
  }

  static std::string text(const analyze::Ledger& ledger) {
    std::string out = headline(ledger.sentence);
    Table table;
    const Unit unit = unit_of(ledger);
    table.column(fmt::format("{} AT {}", printable(ledger.place, 40), age(ledger.time_us)), Table::Align::left);
    table.column(unit.name());
    table.column("RESIDUAL");
    table.column("", Table::Align::left);
    if (ledger.card > 0) table.row({"card", unit(ledger.card), "", ""});
    for (const analyze::LedgerLine& line : ledger.lines) add(table, line, unit);
    out += "\n" + table.text(wants_colour(stdout));
    if (!ledger.host.empty()) {
      Table host;
      host.column("HOST", Table::Align::left);
      host.column("MiB");
      for (const analyze::LedgerLine& line : ledger.host) host.row({printable(line.name), line.bytes ? mib(*line.bytes) : "–"});
      out += "\n" + host.text(wants_colour(stdout));
    }
    return out + to_do(ledger.advice);
  }

  AnswerOptions options_;
  std::string at_ = "peak";
};

const Register kVerb{{.name = "ledger",
                      .group = Group::answer,
                      .help = "which level holds the memory: card, process, driver, pool, blocks",
                      .examples = "  vramscope ledger run.vram\n"
                                  "  vramscope ledger run.vram --at end --json\n"
                                  "  vramscope ledger run.vram --where 'layer:conv2d_1'\n",
                      .make = make<LedgerVerb>}};

}  // namespace

}  // namespace vramscope::cli
