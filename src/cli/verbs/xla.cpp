#include <fmt/format.h>

#include "analyze/xla_dump.h"
#include "cli/run/recording.h"
#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

using analyze::XlaBlock;
using analyze::XlaPart;

class XlaVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override { options_.declare(arguments); }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int) -> Result<Answer> {
      const analyze::Overview overview = engine.overview();
      const std::filesystem::path trace = overview.path;
      const std::string plans = plans_of(overview);
      if (plans.empty()) return fail("recorded without XLA's plans; record again with 'vramscope run --xla'");
      auto blocks = analyze::xla_blocks(engine, trace.parent_path() / plans);
      if (!blocks) return std::unexpected(blocks.error());
      return Answer{text(*blocks), json(*blocks)};
    });
  }

 private:
  // A name beside the trace and nothing else: a trace from somebody else must not lead us elsewhere.
  static std::string plans_of(const analyze::Overview& overview) {
    for (const auto& [key, value] : overview.settings)
      if (key == analyze::kXlaPlans && value.starts_with(kXlaPrefix) && value == safe_name(value)) return value;
    return {};
  }

  std::string text(const std::vector<XlaBlock>& blocks) const {
    std::string out = headline(sentence_of(blocks)) + "\n";
    std::size_t shown = 0;
    for (const XlaBlock& block : blocks) {
      if (options_.rows != 0 && ++shown > options_.rows) break;
      out += fmt::format("\n  {}: {}, {}\n\n", printable(block.module, 60), support::format_size(block.bytes),
                         block.recorded == 0 ? "planned; no such block was recorded"
                                             : "recorded " + support::format_plural(block.recorded, "time", "times"));
      out += table(block);
    }
    return out;
  }

  std::string table(const XlaBlock& block) const {
    Table table;
    for (const auto& [head, drop] :
         {std::pair{"INSTRUCTION", 0}, {"OP", 3}, {"LAYER", 2}, {"LINE", 0}, {"CATEGORY", 1}, {"LIVE", 4}})
      table.column(head, Table::Align::left, drop);
    const Unit unit = Unit::for_largest(block.bytes);
    for (const std::string& head : {unit.name(), std::string("SHARE")}) table.column(head);
    analyze::Bytes rest = 0;
    for (std::size_t i = 0; i < block.parts.size(); ++i) {
      const XlaPart& p = block.parts[i];
      if (options_.rows != 0 && i >= options_.rows) {
        rest += p.bytes;
        continue;
      }
      table.row({printable(p.instruction, 40), printable(short_op(p.op), 40), dash(printable(p.layer, 30)), dash(p.line),
                 dash(p.category), fmt::format("{} to {}", p.from, p.to), unit(p.bytes), share(p.bytes, block.bytes)});
    }
    if (rest > 0)
      table.row(
          {fmt::format("{} more", block.parts.size() - options_.rows), "", "", "", "", "", unit(rest), share(rest, block.bytes)});
    table.row({"not in use then", "", "", "", "", "", unit(block.unused), share(block.unused, block.bytes)});
    table.total({"all", "", "", "", "", "", unit(block.bytes), share(block.bytes, block.bytes)});
    return table.text(wants_colour(stdout));
  }

  static std::string json(const std::vector<XlaBlock>& blocks) {
    support::JsonWriter json(true);
    json.begin_object().member("sentence", sentence_of(blocks)).key("blocks").begin_array();
    for (const XlaBlock& b : blocks) {
      json.begin_object().member("module", b.module).member("bytes", b.bytes).member("instructions", b.instructions);
      json.member("fullest", b.fullest).member("unused", b.unused).member("recorded", b.recorded).key("parts").begin_array();
      for (const XlaPart& p : b.parts)
        json.begin_object()
            .member("instruction", p.instruction)
            .member("op", p.op)
            .member("layer", p.layer)
            .member("line", p.line)
            .member("category", p.category)
            .member("bytes", p.bytes)
            .member("offset", p.offset)
            .member("from", p.from)
            .member("to", p.to)
            .end_object();
      json.end_array().end_object();
    }
    json.end_array().end_object();
    return json.text();
  }

  AnswerOptions options_;
};

const Register kVerb{{.name = "xla",
                      .group = Group::answer,
                      .help = "show what fills the temporary blocks of XLA's executables",
                      .examples = "  vramscope run --xla -o runs/today -- python train.py\n"
                                  "  vramscope xla runs/today\n",
                      .make = make<XlaVerb>}};

}  // namespace

}  // namespace vramscope::cli
