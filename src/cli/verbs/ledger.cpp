#include <fmt/format.h>

#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class LedgerVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    options_.declare(arguments);
    arguments.text("--at", at_, kInstantHelp, "INSTANT");
  }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int place) -> Result<Answer> {
      auto ledger = engine.ledger(at_, place, options_.where);
      if (!ledger) return std::unexpected(ledger.error());
      return Answer{text(*ledger), analyze::to_json(*ledger)};
    });
  }

 private:
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
    const Unit unit = Unit::named(ledger.unit);
    table.column(fmt::format("{} AT {}", printable(ledger.place, 40), support::format_duration(ledger.time_us)),
                 Table::Align::left);
    table.column(unit.name());
    table.column("RESIDUAL");
    table.column("", Table::Align::sentence);
    if (ledger.card > 0) table.row({"card", unit(ledger.card), "", ""});
    for (const analyze::LedgerLine& line : ledger.lines) add(table, line, unit);
    out += "\n" + table.text(wants_colour(stdout));
    if (!ledger.host.empty()) {
      Table host;
      host.column("HOST", Table::Align::left);
      host.column(unit.name());
      for (const analyze::LedgerLine& line : ledger.host) host.row({printable(line.name), line.bytes ? unit(*line.bytes) : "–"});
      out += "\n" + host.text(wants_colour(stdout));
    }
    return out + to_do(ledger.advice);
  }

  AnswerOptions options_;
  std::string at_ = "peak";
};

const Register kVerb{{.name = "ledger",
                      .group = Group::answer,
                      .help = "show which level holds the memory: card, process, driver, pool, blocks",
                      .examples = "  vramscope ledger run.vram\n"
                                  "  vramscope ledger run.vram --at end --json\n"
                                  "  vramscope ledger run.vram --where 'layer:conv2d_1'\n",
                      .make = make<LedgerVerb>}};

}  // namespace

}  // namespace vramscope::cli
