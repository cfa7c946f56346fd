#include <fmt/format.h>

#include "cli/show/answer.h"
#include "cli/show/terminal.h"
#include "cli/show/unit.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

class OomVerb final : public VerbBody {
 public:
  void declare(Arguments& arguments) override {
    options_.every_place = true;  // requests fail where they fail
    options_.declare(arguments);
  }

  Result<int> run() override {
    return answer_each(options_, [&](const analyze::Engine& engine, int) -> Result<Answer> {
      auto ooms = engine.ooms(options_.where);
      if (!ooms) return std::unexpected(ooms.error());
      return Answer{text(*ooms), analyze::to_json(*ooms)};
    });
  }

 private:
  std::string text(const analyze::Ooms& ooms) const {
    std::string out = headline(ooms.sentence, !ooms.events.empty());
    if (ooms.events.empty()) return out;
    const analyze::OomEvent& e = ooms.events.back();
    bool colour = wants_colour(stdout);
    Table causes;
    causes.column("CAUSE", Table::Align::left);
    causes.column("APPLIES", Table::Align::left);
    causes.column("FITS WITHOUT IT", Table::Align::left);
    causes.column("EVIDENCE", Table::Align::sentence);
    for (const analyze::OomCause& c : e.causes)
      causes.row({c.cause, c.holds ? "yes" : "no", in_a_sentence(c.would_fit), in_a_sentence(c.evidence)});
    out += "\n" + causes.text(colour);
    out += "\n" +
           paragraph(fmt::format("The request: {} by {}{} from {}{}.", support::format_size(e.requested), dash(e.op),
                                 e.layer.empty() ? "" : " in " + dash(e.layer), dash(e.pool),
                                 e.short_by == 0 ? "" : fmt::format("; {} short of fitting", support::format_size(e.short_by))),
                     2);
    if (!e.plan.empty()) out += paragraph(e.plan, 2);
    if (e.replay) out += paragraph(e.replay->sentence, 2);
    Table live;
    const Unit unit = Unit::for_largest(e.live);
    for (const char* head : {"LIVE", "LAYER", "OP"}) live.column(head, Table::Align::left);
    for (const std::string& head : {std::string("BLOCKS"), unit.name(), std::string("SHARE")}) live.column(head);
    for (std::size_t i = 0; i < e.live_set.size() && (options_.rows == 0 || i < options_.rows); ++i) {
      const analyze::Group& g = e.live_set[i];
      live.row({in_category(g.keys[0]), dash(g.keys[1]), dash(short_op(g.keys[2])), support::format_count(g.count), unit(g.bytes),
                share(g.bytes, e.live)});
    }
    if (options_.where.empty()) live.total({"all", "", "", "", unit(e.live), ""});
    out += "\n" + live.text(colour);
    if (ooms.events.size() > 1) out += fmt::format("\n  {} requests failed; this is the last one.\n", ooms.events.size());
    return out + to_do(ooms.advice);
  }

  AnswerOptions options_;
};

const Register kVerb{{.name = "oom",
                      .group = Group::answer,
                      .help = "explain why a request failed, and what would have made it fit",
                      .examples = "  vramscope oom run.vram\n"
                                  "  vramscope oom run.vram --json | jq '.events[-1].verdict'\n",
                      .make = make<OomVerb>}};

}  // namespace

}  // namespace vramscope::cli
