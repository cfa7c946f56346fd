#include "cli/summary_answers.h"

#include <fmt/format.h>

#include "analyze/json.h"
#include "cli/answer.h"
#include "cli/terminal.h"
#include "support/units.h"

namespace vramscope::cli {

namespace {

analyze::Live by_category(const analyze::Engine& engine, const std::string& where) {
  analyze::LiveRequest request;
  request.at = "steady";
  request.where = where;
  auto live = engine.live(request);
  return live ? std::move(*live) : analyze::Live{};
}

}  // namespace

std::string summary_answers_text(const analyze::Engine& engine, const std::string& where) {
  if (engine.main_place() < 0) return {};
  bool colour = wants_colour(stdout);
  const analyze::Overview overview = engine.overview();
  std::string out = fmt::format("\n  {}\n", in_a_sentence(overview.sentence));
  if (!overview.missing.empty()) out += fmt::format("  What follows rests on the events that are there. {}.\n", overview.missing);
  analyze::Steps steps = engine.steps(-1, where).value_or(analyze::Steps{});
  out += fmt::format("  {}\n", in_a_sentence(steps.sentence));
  analyze::Live live = by_category(engine, where);
  std::string parts;
  for (const analyze::Group& g : live.groups)
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", in_category(g.keys[0]), support::format_size(g.bytes));
  if (!parts.empty()) out += fmt::format("  At {}: {}.\n", steps.has_steady ? "the steady peak" : "the peak", parts);
  analyze::Findings findings = engine.findings();
  for (std::size_t i = 0; i < findings.findings.size(); ++i) {
    const analyze::Finding& f = findings.findings[i];
    out += fmt::format("\n  {}. {}{}\n", i + 1, bold(in_a_sentence(f.title), colour),
                       f.at_stake ? fmt::format("  ({} at stake)", support::format_size(*f.at_stake)) : "  (at stake: unknown)");
    if (!f.cause.empty()) out += fmt::format("     {}\n", in_a_sentence(f.cause));
    if (!f.remedy.empty()) out += fmt::format("     {}\n", in_a_sentence(f.remedy));
  }
  if (!findings.also_checked.empty())
    out += fmt::format("\n  Also checked: {}.\n", in_a_sentence(fmt::format("{}", fmt::join(findings.also_checked, "; "))));
  return out;
}

void summary_answers_json(const analyze::Engine& engine, const std::string& where, support::JsonWriter& json) {
  json.key("overview");
  analyze::write(json, engine.overview());
  json.key("steps");
  analyze::write(json, engine.steps(-1, where).value_or(analyze::Steps{}));
  json.key("phases").begin_array();
  for (const analyze::Phase& phase : engine.phases(-1, where).value_or(std::vector<analyze::Phase>{}))
    analyze::write(json, phase);
  json.end_array().key("categories");
  analyze::write(json, by_category(engine, where));
  json.key("findings");
  analyze::write(json, engine.findings());
}

}  // namespace vramscope::cli
