#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class HostVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    options_.every_place = true;
    options_.declare(arguments);
    arguments.text("--at", at_, std::string(kInstantHelp) + " (default: when the process held most)", "INSTANT");
  }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int place) -> Result<Answer> {
      auto host = engine.host(at_, place, options_.where);
      if (!host) return std::unexpected(host.error());
      return Answer{text(*host), analyze::to_json(*host)};
    });
  }

 private:
  std::string text(const analyze::Host& host) const {
    std::string out = headline(host.sentence);
    if (host.resident || !host.owners.empty()) out += owners_text(host);
    if (!host.graphs.empty()) out += graphs_text(host);
    if (!host.stages.empty()) out += stages_text(host);
    if (!host.lines.empty()) out += lines_text(host);
    return out + to_do(host.advice);
  }

  static std::string owners_text(const analyze::Host& host) {
    const Unit unit = Unit::for_largest(host.resident.value_or(0));
    Table table;
    table.column("OWNER", Table::Align::left);
    table.column(unit.name());
    for (const auto& [name, bytes] : host.owners) table.row({printable(name, 60), unit(bytes)});
    if (host.rest) table.row({"the rest: libraries, graphs, memory of C and C++", unit.with_sign(*host.rest)});
    if (host.resident) table.total({"resident", unit(*host.resident)});
    if (host.pinned > 0) table.row({"pinned by the driver, in addition", unit(host.pinned)});
    return "\n" + table.text(wants_colour(stdout));
  }

  template <typename Row, typename Cells>
  void rows(Table& table, const std::vector<Row>& all, Cells cells) const {
    const std::size_t shown = options_.rows == 0 ? all.size() : std::min<std::size_t>(options_.rows, all.size());
    for (std::size_t i = 0; i < shown; ++i) table.row(cells(all[i]));
    if (all.size() > shown) table.row({fmt::format("{} more", all.size() - shown)});
  }

  std::string graphs_text(const analyze::Host& host) const {
    const Unit unit = Unit::for_all(
        host.graphs, [](const analyze::HostGraph& g) { return static_cast<analyze::Bytes>(std::max<std::int64_t>(g.bytes, 0)); });
    Table table;
    table.column("GRAPHS BUILT", Table::Align::left);
    table.column("LINE", Table::Align::left);
    for (const std::string& head : {std::string("TRACES"), std::string("OPS"), "ADDED " + unit.name()}) table.column(head);
    rows(table, host.graphs, [&](const analyze::HostGraph& g) -> std::vector<std::string> {
      return {printable(g.function, 40), printable(g.line, 60), support::format_count(g.traces), support::format_count(g.ops),
              unit.with_sign(g.bytes)};
    });
    return "\n" + table.text(wants_colour(stdout));
  }

  // Each in a unit of its own: an element is small, a cache is not.
  std::string stages_text(const analyze::Host& host) const {
    Table table;
    table.column("INPUT STAGE", Table::Align::left);
    table.column("LINE", Table::Align::left);
    for (const char* head : {"ELEMENTS", "EACH", "AT MOST", "COUNTED"}) table.column(head);
    const auto known = [](const std::optional<analyze::Bytes>& bytes) { return bytes ? support::format_size(*bytes) : "–"; };
    rows(table, host.stages, [&](const analyze::HostStage& s) -> std::vector<std::string> {
      return {printable(s.op, 40),
              printable(s.line, 60),
              s.elements > 0 ? support::format_count(s.elements) : "–",
              s.each > 0 ? support::format_size(s.each) : "–",
              known(s.most),
              known(s.counted)};
    });
    return "\n" + table.text(wants_colour(stdout));
  }

  std::string lines_text(const analyze::Host& host) const {
    const Unit unit = Unit::for_all(host.lines, [](const analyze::HostLine& l) { return l.bytes; });
    Table table;
    table.column("LINE", Table::Align::left);
    table.column("", Table::Align::left);
    table.column("BLOCKS");
    table.column(unit.name());
    rows(table, host.lines, [&](const analyze::HostLine& l) -> std::vector<std::string> {
      return {l.line.empty() ? "other lines" : printable(l.line, 60), l.kind == "numpy" ? "NumPy" : "Python",
              support::format_count(l.blocks), unit(l.bytes)};
    });
    return "\n" + table.text(wants_colour(stdout));
  }

  AnswerOptions options_;
  std::string at_;
};

const Register kVerb{{.name = "host",
                      .group = Group::answer,
                      .help = "show host memory by owner: pools, graphs, input pipelines, lines of Python",
                      .examples = "  vramscope host run.vram\n"
                                  "  vramscope host run.vram --at step:100 --json | jq '.graphs[0]'\n",
                      .make = make<HostVerb>}};

}  // namespace

}  // namespace vramscope::cli
